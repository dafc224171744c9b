-- What is written: definitions and results as they were when they came. Results have no trace any
-- more; the column stays, so that stores stay readable by all versions with this schema.
CREATE TABLE IF NOT EXISTS experiments (
    name TEXT PRIMARY KEY, text TEXT NOT NULL, quick INTEGER NOT NULL, absent TEXT NOT NULL,
    title TEXT, kind TEXT, over TEXT, reference TEXT, protocol TEXT, selection TEXT,
    collection TEXT, titles TEXT
);
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, started TEXT NOT NULL, ended TEXT,
    environment TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS tasks (key TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans (
    experiment TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL,
    series TEXT NOT NULL, repeat INTEGER NOT NULL,
    PRIMARY KEY (experiment, position)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS plans_by_key ON plans (key);
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    fit_seconds REAL NOT NULL, n_train INTEGER NOT NULL, n_test INTEGER NOT NULL,
    chosen TEXT NOT NULL, metrics TEXT NOT NULL, trace TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL
) WITHOUT ROWID;

-- What is read: typed columns, computed from the definitions of tasks. No part of the file. What is
-- called "… [skpll_json]" comes out as lists and dicts, under the name before the brackets.
CREATE TEMP VIEW defined AS SELECT
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
    CAST(json_extract(t.definition, '$.parameters') AS TEXT) AS "parameters [skpll_json]",
    CAST(json_extract(t.definition, '$.scaling') AS TEXT) AS scaling,
    e.protocol, e.titles
FROM plans p JOIN tasks t ON t.key = p.key JOIN experiments e ON e.name = p.experiment;
CREATE TEMP VIEW titled AS SELECT
    *,
    COALESCE(json_extract(titles, '$."' || dataset || '"'), dataset)
    || CASE WHEN kind <> 'uniform' THEN ', ' || kind ELSE '' END
    || CASE WHEN noise > 0 THEN printf(', noise = %g', noise) ELSE '' END
    || CASE WHEN MIN(scaling) OVER same <> MAX(scaling) OVER same THEN ', ' || scaling ELSE '' END
    AS data
FROM defined WINDOW same AS (PARTITION BY experiment, dataset);
CREATE TEMP VIEW planned AS SELECT
    *, data || CASE WHEN p IS NULL THEN '' ELSE printf(', p = %g, r = %d', p, r) END AS "case",
    COUNT(*) OVER (PARTITION BY experiment, data, p, r, method) AS of_case
FROM titled;
CREATE TEMP VIEW shown_results AS SELECT
    p.*, f.run, f.chosen AS "chosen [skpll_json]", f.metrics AS "metrics [skpll_json]", f.seconds,
    f.fit_seconds, f.n_train, f.n_test
FROM planned p JOIN results f ON f.key = p.key;
CREATE TEMP VIEW shown_failures AS SELECT p.*, f.reason, f.message, f.seconds
FROM planned p JOIN failures f ON f.key = p.key;
CREATE TEMP VIEW shown_experiments AS SELECT
    e.name, e.title, e.kind, e.over, e.reference, e.protocol, e.selection, e.collection,
    CASE WHEN e.quick THEN 'true' ELSE 'false' END AS "quick [skpll_json]", e.text,
    e.titles AS "titles [skpll_json]", e.absent AS "absent [skpll_json]",
    (SELECT COUNT(DISTINCT key) FROM plans WHERE experiment = e.name) AS planned,
    (
        SELECT json_group_array(
            json_object(
                'id', id, 'started', started, 'ended', ended, 'environment', json(environment)
            )
        ) FROM (SELECT * FROM runs WHERE experiment = e.name ORDER BY id)
    ) AS "runs [skpll_json]"
FROM experiments e ORDER BY e.name;
