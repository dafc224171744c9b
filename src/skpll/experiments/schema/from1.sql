-- Schema 1 had the definitions of tasks, but of experiments nothing beside their text.
ALTER TABLE experiments ADD COLUMN title TEXT;
ALTER TABLE experiments ADD COLUMN kind TEXT;
ALTER TABLE experiments ADD COLUMN over TEXT;
ALTER TABLE experiments ADD COLUMN reference TEXT;
ALTER TABLE experiments ADD COLUMN protocol TEXT;
ALTER TABLE experiments ADD COLUMN selection TEXT;
ALTER TABLE experiments ADD COLUMN collection TEXT;
ALTER TABLE experiments ADD COLUMN titles TEXT;
ALTER TABLE experiments ADD COLUMN expected TEXT;
