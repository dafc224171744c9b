CREATE TABLE experiments (
    name TEXT PRIMARY KEY, text TEXT NOT NULL, quick INTEGER NOT NULL, absent TEXT NOT NULL,
    title TEXT, kind TEXT, over TEXT, reference TEXT, protocol TEXT, selection TEXT,
    collection TEXT, titles TEXT, expected TEXT
);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, experiment TEXT NOT NULL, started TEXT NOT NULL, ended TEXT,
    environment TEXT NOT NULL
);
CREATE TABLE tasks (key TEXT PRIMARY KEY, definition TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plans (
    experiment TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL,
    series TEXT NOT NULL, repeat INTEGER NOT NULL,
    PRIMARY KEY (experiment, position)
) WITHOUT ROWID;
CREATE INDEX plans_by_key ON plans (key);
CREATE TABLE results (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    fit_seconds REAL NOT NULL, n_train INTEGER NOT NULL, n_test INTEGER NOT NULL,
    chosen TEXT NOT NULL, metrics TEXT NOT NULL, trace TEXT
) WITHOUT ROWID;
CREATE TABLE failures (
    key TEXT PRIMARY KEY, run INTEGER NOT NULL, finished TEXT NOT NULL, seconds REAL NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL
) WITHOUT ROWID;
