// The arrows of the layers (drawn in docs/architecture.md) and one home for each outside library. `npm run layers` also proves that
// every module was seen and that a planted violation is found.
const own = (...folders) => `^src/(${folders.join("|")})/`;

/** A folder may import only what is listed; itself, and how an optional field is left out, is always allowed. */
function only(name, folder, allowed, comment) {
  return {
    name,
    comment,
    severity: "error",
    from: { path: `^src/${folder}/` },
    to: { path: "^src/", pathNot: own(folder, "optional", ...allowed) },
  };
}

/** A library is imported in its home alone, behind our own words. */
function home(library, folders, comment) {
  return {
    name: `home-of-${library.replace(/[^a-z0-9]/g, "-")}`,
    comment,
    severity: "error",
    from: { path: "^src/", pathNot: own(...folders) },
    to: { path: `node_modules/${library}/` },
  };
}

module.exports = {
  forbidden: [
    {
      name: "no-circles",
      comment: "Two modules that need each other are one, or miss a third; types are no exception.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      comment: "A module nobody imports is dead. What a browser runs (report-page.js, web-page.js) is read as text.",
      severity: "error",
      from: {
        orphan: true,
        path: "^src/",
        pathNot: "^src/cli/(main|node-main|run-main)\\.ts$|\\.d\\.ts$|/(report|web)-page\\.js$",
      },
      to: {},
    },
    {
      name: "not-to-tests",
      comment: "What ships never rests on tests or scripts.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|scripts|bench)/" },
    },
    {
      name: "not-unresolvable",
      comment: "An import that resolves to nothing hides from every other rule.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    only("optional-knows-nobody", "optional", [], "A leaf: how an optional field is left out."),
    only("audit-knows-nobody", "audit", [], "A hash-chained trail of entries: what they tell is not its business."),
    only("errors-know-nobody", "errors", [], "Errors are the words of all; they know nobody."),
    only("crdt-knows-nobody", "crdt", [], "The CRDT is pure."),
    only(
      "replica-knows-crdt",
      "controller/replica",
      ["crdt"],
      "The replication core knows the CRDT and its own ports.",
    ),
    {
      name: "replica-core-is-deterministic",
      comment: "No clock, disk or socket but through a port: one seed of the simulator decides everything (ADR 0501).",
      severity: "error",
      from: { path: "^src/(crdt|controller/replica)/" },
      to: { dependencyTypes: ["core"] },
    },
    only(
      "lab-knows-errors-only",
      "lab",
      ["errors"],
      "The lab is a machine shop: it knows nothing of what runs on its machines.",
    ),
    only(
      "web-draws",
      "web",
      ["errors", "tui", "engine/events", "engine/run"],
      "Pages are drawn from records and living runs; the cluster comes from outside.",
    ),
    only("tui-knows-events-only", "tui", ["errors", "engine/events"], "A view draws events; it never reaches a host."),
    only(
      "engine-knows-engine",
      "engine",
      ["errors", "audit"],
      "The engine knows actions only by their interface, and nothing of clusters.",
    ),
    only(
      "modules-know-steps",
      "engine/modules",
      ["errors", "engine/step"],
      "A module is a pure function of its arguments.",
    ),
    only("step-knows-errors", "engine/step", ["errors"], "What a step is: the ground that modules stand on."),
    only(
      "yaml-knows-errors",
      "engine/yaml",
      ["errors"],
      "YAML is a text with places; it knows nothing of its meaning.",
    ),
    only("project-knows-errors", "engine/project", ["errors"], "Where the operator's files and the shipped ones lie."),
    only(
      "expressions-know-yaml",
      "engine/expressions",
      ["errors", "engine/yaml", "engine/project", "engine/step"],
      "Expressions know the values that flow through them.",
    ),
    only(
      "params-know-expressions",
      "engine/params",
      ["errors", "engine/yaml", "engine/expressions", "engine/step"],
      "Parameters are declared in YAML and given as expressions.",
    ),
    only(
      "facts-know-errors",
      "engine/facts",
      ["errors"],
      "What nodes tell of themselves: names, shapes, and what is kept.",
    ),
    only("events-know-errors", "engine/events", ["errors"], "What happened, as data: no more than that."),
    only(
      "roster-knows-params",
      "engine/roster",
      ["errors", "engine/yaml", "engine/project", "engine/params", "engine/step", "engine/facts"],
      "The roster is data: it reaches no host.",
    ),
    only(
      "states-know-roster",
      "engine/states",
      [
        "errors",
        "engine/yaml",
        "engine/project",
        "engine/expressions",
        "engine/params",
        "engine/step",
        "engine/roster",
        "engine/facts",
      ],
      "A state is planned without a node.",
    ),
    only(
      "program-knows-states",
      "engine/program",
      ["errors", "engine/step", "engine/states"],
      "Planned steps become sh, without a connection.",
    ),
    only(
      "session-knows-program",
      "engine/session",
      [
        "errors",
        "engine/events",
        "engine/facts",
        "engine/params",
        "engine/program",
        "engine/roster",
        "engine/states",
        "engine/step",
        "engine/tables",
        "engine/transport",
      ],
      "A session drives one node; it knows nothing of the others, of stages or of records.",
    ),
    only(
      "feed-knows-session",
      "engine/feed",
      ["errors", "engine/events", "engine/program", "engine/session", "engine/step", "engine/transport"],
      "Who of a run's nodes feeds whom: what sessions, which know one node each, leave to others.",
    ),
    {
      name: "orchestrate-knows-no-process",
      comment: "What is done, and in which order; the process that does it and its record come from outside.",
      severity: "error",
      from: { path: "^src/engine/orchestrate/" },
      to: { path: "^src/engine/(program|run)/" },
    },
    only(
      "run-knows-events",
      "engine/run",
      ["errors", "audit", "engine/events", "engine/facts", "engine/orchestrate"],
      "A run's process, record and socket carry requests and events; they open none of them.",
    ),
    only(
      "tables-know-errors",
      "engine/tables",
      ["errors"],
      "Bytes of disks on the bastion's: where they came from is told.",
    ),
    only("transport-knows-errors", "engine/transport", ["errors"], "A transport moves bytes."),
    only(
      "actions-compose",
      "actions",
      ["errors", "engine", "pki", "api", "runtime", "system"],
      "An action is engine's interface + pki + api.",
    ),
    only("runtime-knows-errors", "runtime", ["errors"], "A build of files from files."),
    only("system-knows-errors", "system", ["errors"], "A build of files by programs of this machine."),
    only("pki-knows-errors", "pki", ["errors"], "Keys and certificates know no cluster."),
    only("api-knows-pki", "api", ["errors", "pki"], "The API is data and a client."),
    only(
      "controller-knows-cluster",
      "controller",
      ["errors", "audit", "crdt", "pki", "api"],
      "The controller never imports the engine.",
    ),
    only(
      "agent-knows-cluster",
      "agent",
      ["errors", "crdt", "pki", "api", "engine/transport"],
      "The agent uses the engine's local transport at most.",
    ),
    home("ssh2", ["engine/transport"], "ssh2 speaks through the Host interface."),
    home("yaml", ["engine/yaml"], "YAML comes with its places."),
    home("handlebars", ["engine/expressions"], "Templates are strict in one place."),
    home("listr2", ["tui"], "A view."),
    home("ink", ["tui/ink"], "The live views; the rest of tui is plain functions."),
    home("react", ["tui/ink"], "The live views; the rest of tui is plain functions."),
    home("string-width", ["tui/ink"], "Columns on a terminal are counted in one place."),
    home("node-forge", ["pki"], "Certificates are made in one place."),
    home("lowdb", ["controller"], "The store."),
    home("prom-client", ["controller"], "Metrics."),
    home("zx", ["actions"], "Local commands."),
    home("diff", ["engine/session"], "File diffs."),
    home("commander", ["cli", "lab"], "argv is the command line's."),
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|node_modules/.cache)/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      conditionNames: ["import", "node", "types"],
      exportsFields: ["exports"],
      extensions: [".ts", ".js", ".mjs", ".json"],
    },
  },
};
