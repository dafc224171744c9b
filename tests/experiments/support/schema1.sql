PRAGMA application_id = 1936420972;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE experiments (
    name TEXT PRIMARY KEY, text TEXT NOT NULL, quick INTEGER NOT NULL, absent TEXT NOT NULL
);
INSERT INTO "experiments" VALUES('old','name = "old"
title = "An old one"
reference = "K"
[protocol]
folds = 4
[[data]]
name = "iris"
p = [0.3]
[[methods]]
label = "K"
method = "plknn"
grid = { n_neighbors = [3, 5] }
',0,'[]');
CREATE TABLE failures (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "failures" VALUES('926945726393ace7a8297e6192f2937f',1,'2026-11-15T21:14:03+00:00',1.0,'time limit','stopped after 1 seconds');
CREATE TABLE plans (
    experiment TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL,
    series TEXT NOT NULL, repeat INTEGER NOT NULL,
    PRIMARY KEY (experiment, position)
) WITHOUT ROWID;
INSERT INTO "plans" VALUES('old',0,'2b310663910a1226a375a436cb530eca','K','K',0);
INSERT INTO "plans" VALUES('old',1,'91ac24813f2e4430f207b4b15b473eca','K','K',0);
INSERT INTO "plans" VALUES('old',2,'926945726393ace7a8297e6192f2937f','K','K',0);
INSERT INTO "plans" VALUES('old',3,'dc97aabc7d3d39c82b7f92dd5f8e9448','K','K',0);
CREATE TABLE results (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    fit_seconds REAL NOT NULL, n_train INTEGER NOT NULL, n_test INTEGER NOT NULL,
    chosen TEXT NOT NULL, metrics TEXT NOT NULL, trace TEXT
) WITHOUT ROWID;
INSERT INTO "results" VALUES('2b310663910a1226a375a436cb530eca',1,'2026-11-15T21:14:03+00:00',2.5,0.5,112,38,'{"n_neighbors": 3}','{"accuracy": 0.94}',NULL);
INSERT INTO "results" VALUES('91ac24813f2e4430f207b4b15b473eca',1,'2026-11-15T21:14:03+00:00',2.5,0.5,112,38,'{"n_neighbors": 3}','{"accuracy": 0.9}',NULL);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, started TEXT NOT NULL, ended TEXT,
    environment TEXT NOT NULL
);
INSERT INTO "runs" VALUES(1,'old','2026-11-15T21:14:03+00:00','2026-11-15T21:14:03+00:00','{"python": "3.11.7"}');
CREATE TABLE tasks (key TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "tasks" VALUES('2b310663910a1226a375a436cb530eca','{"corruption_seed":0,"dataset":"iris","defaults":{"metric":"euclidean","metric_params":null,"search":"exact","weights":"distance"},"features":{},"grid":{"n_neighbors":[3,5]},"method":"plknn","p":0.3,"parameters":{},"r":1,"rows":null,"scaling":"zscore","selection":{"folds":3,"scoring":"covering_rate","seed":0},"split":{"folds":4,"kind":"kfold","seed":0,"split":0},"trace":false}');
INSERT INTO "tasks" VALUES('91ac24813f2e4430f207b4b15b473eca','{"corruption_seed":0,"dataset":"iris","defaults":{"metric":"euclidean","metric_params":null,"search":"exact","weights":"distance"},"features":{},"grid":{"n_neighbors":[3,5]},"method":"plknn","p":0.3,"parameters":{},"r":1,"rows":null,"scaling":"zscore","selection":{"folds":3,"scoring":"covering_rate","seed":0},"split":{"folds":4,"kind":"kfold","seed":0,"split":1},"trace":false}');
INSERT INTO "tasks" VALUES('926945726393ace7a8297e6192f2937f','{"corruption_seed":0,"dataset":"iris","defaults":{"metric":"euclidean","metric_params":null,"search":"exact","weights":"distance"},"features":{},"grid":{"n_neighbors":[3,5]},"method":"plknn","p":0.3,"parameters":{},"r":1,"rows":null,"scaling":"zscore","selection":{"folds":3,"scoring":"covering_rate","seed":0},"split":{"folds":4,"kind":"kfold","seed":0,"split":2},"trace":false}');
INSERT INTO "tasks" VALUES('dc97aabc7d3d39c82b7f92dd5f8e9448','{"corruption_seed":0,"dataset":"iris","defaults":{"metric":"euclidean","metric_params":null,"search":"exact","weights":"distance"},"features":{},"grid":{"n_neighbors":[3,5]},"method":"plknn","p":0.3,"parameters":{},"r":1,"rows":null,"scaling":"zscore","selection":{"folds":3,"scoring":"covering_rate","seed":0},"split":{"folds":4,"kind":"kfold","seed":0,"split":3},"trace":false}');
CREATE INDEX plans_by_key ON plans (key);
COMMIT;
