import type { Command } from "commander";

/** One command as `kcore help` lists it; its file is loaded only when it is used. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: (words?: readonly string[]) => Promise<Command>;
}

/** Every command that works, in the order of the help. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: "init",
    summary: "Create a new project",
    load: async () => (await import("./project/init-command.ts")).initCommand(),
  },
  {
    name: "lab",
    summary: "Throwaway real machines on this one",
    load: async () => (await import("./lab/lab-command.ts")).labCommand(),
  },
  {
    name: "modules",
    summary: "The catalogue of what a step can keep in order",
    load: async () => (await import("./modules/modules-command.ts")).modulesCommand(),
  },
  {
    name: "pack",
    summary: "States, templates and modules that projects share",
    load: async () => (await import("./pack/pack-command.ts")).packCommand(),
  },
  {
    name: "schema",
    summary: "JSON Schema of the files that you write, for editors",
    load: async () => (await import("./schema/schema-command.ts")).schemaCommand(),
  },
  {
    name: "roster",
    summary: "The machines and how to reach them",
    load: async () => (await import("./roster/roster-command.ts")).rosterCommand(),
  },
  {
    name: "secrets",
    summary: "Secrets that stand encrypted in git",
    load: async () => (await import("./secrets/secrets-command.ts")).secretsCommand(),
  },
  {
    name: "check",
    summary: "Find what is wrong with a project, without a connection",
    load: async () => (await import("./check/check-command.ts")).checkCommand(),
  },
  {
    name: "ping",
    summary: "Connect to nodes and tell how long it took",
    load: async () => (await import("./adhoc/ping-command.ts")).pingCommand(),
  },
  {
    name: "facts",
    summary: "Gather what nodes say about themselves",
    load: async () => (await import("./adhoc/facts-command.ts")).factsCommand(),
  },
  {
    name: "exec",
    summary: "Run one command on nodes",
    load: async () => (await import("./adhoc/exec-command.ts")).execCommand(),
  },
  {
    name: "state",
    summary: "List, show and apply states",
    load: async () => (await import("./state/state-command.ts")).stateCommand(),
  },
  {
    name: "orchestrate",
    summary: "Run an orchestration over nodes",
    load: async (words) => (await import("./orchestrate/orchestrate-command.ts")).orchestrateCommand(words),
  },
  {
    name: "runs",
    summary: "Recorded and living runs",
    load: async () => (await import("./runs/runs-command.ts")).runsCommand(),
  },
  {
    name: "web",
    summary: "Runs and the fleet in a browser, live",
    load: async () => (await import("./web/web-command.ts")).webCommand(),
  },
  {
    name: "disk",
    summary: "Recovery keys of encrypted disks",
    load: async () => (await import("./disk/disk-command.ts")).diskCommand(),
  },
  {
    name: "audit",
    summary: "Who changed what, in a record that cannot be changed unseen",
    load: async () => (await import("./audit/audit-command.ts")).auditCommand(),
  },
  {
    name: "create",
    summary: "Create a cluster's certificate authority",
    load: async () => (await import("./cluster/create-command.ts")).createCommand(),
  },
  {
    name: "config",
    summary: "Contexts: the clusters this user knows",
    load: async () => (await import("./cluster/config-command.ts")).configCommand(),
  },
  {
    name: "get",
    summary: "What the cluster knows",
    load: async () => (await import("./get/get-command.ts")).getCommand(),
  },
  {
    name: "top",
    summary: "Watch the whole cluster live",
    load: async () => (await import("./top/top-command.ts")).topCommand(),
  },
  {
    name: "health",
    summary: "Ask the controllers whether they are well",
    load: async () => (await import("./cluster/health-command.ts")).healthCommand(),
  },
  {
    name: "apply",
    summary: "Make it so, as manifests say",
    load: async () => (await import("./apply/apply-command.ts")).applyCommand(),
  },
  {
    name: "diff",
    summary: "What kcore apply would change",
    load: async () => (await import("./apply/apply-command.ts")).diffCommand(),
  },
  {
    name: "describe",
    summary: "One thing of the cluster in all its detail",
    load: async () => (await import("./get/describe-command.ts")).describeCommand(),
  },
  {
    name: "node",
    summary: "The cluster's nodes: approve, reject, label, taint, remove",
    load: async () => (await import("./node/node-command.ts")).nodeCommand(),
  },
  {
    name: "conflict",
    summary: "Settle edits that did not know of each other",
    load: async () => (await import("./cluster/conflict-command.ts")).conflictCommand(),
  },
  {
    name: "update",
    summary: "Roll a new version out over the cluster",
    load: async () => (await import("./update/update-command.ts")).updateCommand(),
  },
  {
    name: "rotate",
    summary: "New keys and certificates while the cluster runs",
    load: async () => (await import("./certificates/rotate-command.ts")).rotateCommand(),
  },
  {
    name: "revoke",
    summary: "Make certificates worthless",
    load: async () => (await import("./certificates/revoke-command.ts")).revokeCommand(),
  },
  {
    name: "controller",
    summary: "The cluster's controller, on a node",
    load: async () => (await import("./controller/daemon-commands.ts")).controllerCommand(),
  },
  {
    name: "agent",
    summary: "The agent of a deployed node",
    load: async () => (await import("./controller/daemon-commands.ts")).agentCommand(),
  },
  {
    name: "explain",
    summary: "What an error's code means, and what to do",
    load: async () => (await import("./explain/explain-command.ts")).explainCommand(),
  },
  {
    name: "man",
    summary: "Manual pages",
    load: async () => (await import("./man/man-command.ts")).manCommand(),
  },
  {
    name: "completion",
    summary: "Let your shell complete kcore's words",
    load: async () => (await import("./completion/completion-command.ts")).completionCommand(),
  },
];
