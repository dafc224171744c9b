-- What is read: typed columns, computed from the definitions of tasks.
CREATE VIEW planned AS SELECT
    p.experiment, p.position, p.key,
    CAST(json_extract(t.definition, '$.dataset') AS TEXT) AS dataset,
    CAST(json_extract(t.definition, '$.p') AS REAL) AS p,
    CAST(json_extract(t.definition, '$.r') AS INTEGER) AS r,
    CAST(json_extract(t.definition, '$.corruption_seed') AS INTEGER) AS corruption_seed,
    CASE WHEN json_extract(t.definition, '$.p') IS NOT NULL
        THEN COALESCE(CAST(json_extract(t.definition, '$.kind') AS TEXT), 'uniform') END AS kind,
    COALESCE(CAST(json_extract(t.definition, '$.noise') AS REAL), 0.0) AS noise,
    p.repeat,
    CAST(json_extract(t.definition, '$.split.split') AS INTEGER) AS split,
    p.label AS method,
    p.series,
    CAST(json_extract(t.definition, '$.method') AS TEXT) AS estimator,
    CAST(json_extract(t.definition, '$.version') AS INTEGER) AS version,
    CAST(json_extract(t.definition, '$.parameters') AS TEXT) AS parameters,
    CAST(json_extract(t.definition, '$.scaling') AS TEXT) AS scaling,
    CAST(json_extract(t.definition, '$.features.nystroem') AS INTEGER) AS nystroem,
    e.protocol, e.titles
FROM plans p JOIN tasks t ON t.key = p.key JOIN experiments e ON e.name = p.experiment;
CREATE VIEW shown_results AS SELECT
    p.*, f.chosen, f.metrics, f.seconds, f.fit_seconds, f.n_train, f.n_test, f.trace
FROM planned p JOIN results f ON f.key = p.key ORDER BY p.experiment, p.position;
CREATE VIEW shown_failures AS SELECT p.*, f.reason, f.message, f.seconds
FROM planned p JOIN failures f ON f.key = p.key ORDER BY p.experiment, p.position;
CREATE VIEW shown_experiments AS SELECT
    e.name, e.title, e.kind, e.over, e.reference, e.protocol, e.selection, e.collection, e.quick,
    e.text, e.titles, e.expected, e.absent,
    (SELECT COUNT(DISTINCT key) FROM plans WHERE experiment = e.name) AS planned,
    (
        SELECT json_group_array(
            json_object('started', started, 'ended', ended, 'environment', json(environment))
        ) FROM (SELECT * FROM runs WHERE experiment = e.name ORDER BY id)
    ) AS runs
FROM experiments e ORDER BY e.name;
