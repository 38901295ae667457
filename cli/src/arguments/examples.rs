//! The examples of the help pages.

/// The examples of each command, which may be a subcommand: a command line, and its effect.
pub(super) const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "init",
        &[
            ("init . --agent claude", "this repository, with the agent of Claude Code"),
            ("init shop --agent \"./agent.sh --fast\"", "any program with its arguments"),
        ],
    ),
    (
        "run",
        &[
            ("run", "the project here"),
            ("run shop api --max-agents 4", "two projects with four agents in all"),
            ("run shop -o json", "the final status for programs"),
        ],
    ),
    (
        "agent",
        &[
            ("agent orchestrate login", "one feature, over as many sessions as it needs"),
            ("agent run shop --feature login --resume", "the same, after it was blocked"),
            ("agent run shop --session shop-1a2b3c/login/1/2", "a new run from that session on"),
            ("agent sessions shop --prune --yes", "drop the histories of old runs"),
        ],
    ),
    (
        "batch",
        &[
            ("batch night.toml", "all projects of the file; repeat it to continue"),
            ("batch night.toml --detach", "in the background"),
            ("batch status night", "the state of the batch with this id"),
            ("batch night.toml --junit report.xml", "a report for CI"),
        ],
    ),
    ("status", &[("status shop", "one project"), ("status shop -o json", "for programs")]),
    ("watch", &[("watch shop", "features, log and transcript on a full screen")]),
    (
        "feature",
        &[
            ("feature add login \"Log in\" --check \"sh login.sh\"", "a new feature"),
            ("feature import tasks.md --dry-run", "the features of another tool"),
            ("feature next", "the features that are ready"),
        ],
    ),
    (
        "list",
        &[
            ("list --status blocked", "the runs that need a person"),
            ("list --project shop -o ids", "ids for other commands"),
            ("list --kind project", "the projects"),
        ],
    ),
    (
        "describe",
        &[("describe login", "the last run of a feature"), ("describe shop", "a project")],
    ),
    (
        "history",
        &[
            ("history login", "the events of the last run"),
            ("history login -f", "follow a running one"),
            ("history login -o jsonl", "for programs"),
        ],
    ),
    (
        "logs",
        &[("logs login -f", "follow the agent"), ("logs login --session 1", "an earlier session")],
    ),
    ("tree", &[("tree", "the runs of the project here"), ("tree login", "one feature")]),
    (
        "graph",
        &[("graph shop", "the features as a tree"), ("graph shop --as svg > shop.svg", "an image")],
    ),
    ("why", &[("why", "the project here"), ("why login", "a feature")]),
    (
        "session",
        &[
            ("session list shop", "the sessions of a project"),
            ("session transcript login", "the conversation of the last session"),
        ],
    ),
    (
        "usage",
        &[
            ("usage --by model", "tokens and cost of all projects"),
            ("usage shop -o csv", "for a spreadsheet"),
        ],
    ),
    ("schema", &[("schema", "the names of the documents"), ("schema status", "one JSON Schema")]),
    (
        "pause",
        &[
            ("pause shop --why \"release today\"", "a project"),
            ("pause --filter label.team=web --dry-run", "the runs with a label"),
            ("pause login --wait --timeout 10m", "return when its session has ended"),
        ],
    ),
    ("resume", &[("resume shop", "a project"), ("resume login", "a paused or blocked feature")]),
    ("cancel", &[("cancel login --why \"not needed\"", "a feature"), ("cancel shop", "a project")]),
    ("terminate", &[("terminate shop --why stuck", "kill the agents of a project")]),
    ("signal", &[("signal login note '\"use the new API\"'", "a note to the agent")]),
    ("steer", &[("steer login \"keep the old route\"", "a note for the next session")]),
    ("answer", &[("answer login \"yes, both formats\"", "the question of the agent")]),
    (
        "approve",
        &[
            ("approve login", "one feature"),
            ("approve --filter project=shop --yes", "all that wait for approval"),
        ],
    ),
    ("deny", &[("deny login --why \"no tests for errors\"", "back to the agent")]),
    (
        "fork",
        &[
            ("fork login --from last", "from the last step with a commit"),
            ("fork login --from before-failure --note \"try sqlite\"", "another way"),
            ("fork --filter status=blocked --from start --dry-run", "only report"),
        ],
    ),
    (
        "restart",
        &[
            ("restart login", "a feature from the beginning"),
            ("restart --filter status=blocked --yes", "all blocked features"),
        ],
    ),
    (
        "rollback",
        &[
            ("rollback shop --to login --dry-run", "the features that would be undone"),
            ("rollback shop --to 4a7931d --yes", "the target branch, to a commit"),
            ("rollback --filter label.team=web --to v1 --dry-run", "all projects with a label"),
        ],
    ),
    ("checkpoint", &[("checkpoint login --note \"before lunch\"", "keep the current work")]),
    ("checkpoints", &[("checkpoints login", "the steps for fork and rollback")]),
    ("reconcile", &[("reconcile login --happened", "the effect happened")]),
    (
        "replay",
        &[("replay --all", "each run of the log"), ("replay runs.jsonl", "the runs of a file")],
    ),
    (
        "export",
        &[
            ("export --project shop -O shop.jsonl", "a project"),
            ("export --all -O all.jsonl", "everything"),
        ],
    ),
    ("import", &[("import shop.jsonl", "the runs of an export")]),
    ("backup", &[("backup -O night.backup", "the whole log, also while it is in use")]),
    ("restore", &[("restore night.backup --data-dir new", "into an empty data directory")]),
    ("check", &[("check", "look for damage"), ("check --repair", "repair it")]),
    (
        "prune",
        &[
            ("prune --older-than 30d --dry-run", "only report"),
            ("prune --older-than 12w --status passed --yes", "drop old histories"),
        ],
    ),
    (
        "doctor",
        &[("doctor", "this machine and the project here"), ("doctor --fix", "fix what is safe")],
    ),
    ("demo", &[("demo /tmp/reckon", "a project with a scripted agent")]),
    ("bench", &[("bench --quick", "a quick estimate")]),
    (
        "completions",
        &[("completions bash > ~/.local/share/bash-completion/completions/longhaul", "for bash")],
    ),
    (
        "agent run",
        &[
            ("agent run shop", "the project, as `run` does"),
            ("agent run shop --feature login", "one feature and what it depends on"),
        ],
    ),
    (
        "agent orchestrate",
        &[("agent orchestrate login --dir shop", "one feature, until it passes or needs a person")],
    ),
    ("agent checkpoint", &[("agent checkpoint login --note \"before lunch\"", "keep its work")]),
    (
        "agent sessions",
        &[
            ("agent sessions shop", "the sessions of a project"),
            ("agent sessions shop --prune --yes", "drop the histories of old runs"),
        ],
    ),
    ("batch status", &[("batch status night", "its projects, at work or at rest")]),
    (
        "feature add",
        &[(
            "feature add login \"Log in\" --check \"sh login.sh\" --depends-on users",
            "after the feature users",
        )],
    ),
    (
        "feature import",
        &[
            ("feature import tasks.json --dry-run", "only report"),
            ("feature import issues.json shop --as github", "into another project"),
        ],
    ),
    ("feature export", &[("feature export --to beads -O issues.jsonl", "for another tool")]),
    ("feature list", &[("feature list shop --all", "each feature of a project")]),
    ("feature show", &[("feature show login", "its entry and its status")]),
    ("feature next", &[("feature next shop", "the features that are ready")]),
    ("feature block", &[("feature block login --why \"too early\"", "its run is cancelled")]),
    ("feature unblock", &[("feature unblock login", "it is tried again")]),
    ("session list", &[("session list shop", "the sessions of a project")]),
    ("session show", &[("session show login", "the last session of a feature")]),
    ("session transcript", &[("session transcript login --full", "with long results of tools")]),
    ("session handoff", &[("session handoff login", "what the last session left or received")]),
];
