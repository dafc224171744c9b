-- Schema 2 had other views: of how labels are made ambiguous they showed p, r and the seed only.
DROP VIEW shown_experiments;
DROP VIEW shown_failures;
DROP VIEW shown_results;
DROP VIEW planned;
