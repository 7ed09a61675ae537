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
    summary: "Throwaway test machines on this computer",
    load: async () => (await import("./lab/lab-command.ts")).labCommand(),
  },
  {
    name: "modules",
    summary: "List the modules a step can use",
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
    summary: "Secrets, kept encrypted in git",
    load: async () => (await import("./secrets/secrets-command.ts")).secretsCommand(),
  },
  {
    name: "check",
    summary: "Check a project for mistakes, without a connection",
    load: async () => (await import("./check/check-command.ts")).checkCommand(),
  },
  {
    name: "ping",
    summary: "Connect to nodes and show how long it takes",
    load: async () => (await import("./adhoc/ping-command.ts")).pingCommand(),
  },
  {
    name: "facts",
    summary: "Gather facts about nodes: hardware, system, addresses",
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
    summary: "The tamper-evident audit log: who changed what",
    load: async () => (await import("./audit/audit-command.ts")).auditCommand(),
  },
  {
    name: "create",
    summary: "Create a cluster's certificate authority",
    load: async () => (await import("./cluster/create-command.ts")).createCommand(),
  },
  {
    name: "cluster",
    summary: "Back up and restore this machine's keys of a cluster",
    load: async () => (await import("./cluster/cluster-command.ts")).clusterCommand(),
  },
  {
    name: "config",
    summary: "Contexts: the clusters this user knows",
    load: async () => (await import("./cluster/config-command.ts")).configCommand(),
  },
  {
    name: "get",
    summary: "List nodes, controllers, certificates and conflicts of the cluster",
    load: async () => (await import("./get/get-command.ts")).getCommand(),
  },
  {
    name: "top",
    summary: "Watch the whole cluster live",
    load: async () => (await import("./top/top-command.ts")).topCommand(),
  },
  {
    name: "health",
    summary: "Check the controllers' health",
    load: async () => (await import("./cluster/health-command.ts")).healthCommand(),
  },
  {
    name: "apply",
    summary: "Apply manifests: create or update what they describe",
    load: async () => (await import("./apply/apply-command.ts")).applyCommand(),
  },
  {
    name: "diff",
    summary: "Show what kcore apply would change",
    load: async () => (await import("./apply/apply-command.ts")).diffCommand(),
  },
  {
    name: "describe",
    summary: "Show everything about one node, controller …",
    load: async () => (await import("./get/describe-command.ts")).describeCommand(),
  },
  {
    name: "node",
    summary: "The cluster's nodes: approve, reject, label, taint, remove",
    load: async () => (await import("./node/node-command.ts")).nodeCommand(),
  },
  {
    name: "conflict",
    summary: "Resolve concurrent edits of the same thing",
    load: async () => (await import("./cluster/conflict-command.ts")).conflictCommand(),
  },
  {
    name: "update",
    summary: "Roll a new version out over the cluster",
    load: async () => (await import("./update/update-command.ts")).updateCommand(),
  },
  {
    name: "rotate",
    summary: "Renew keys and certificates while the cluster runs",
    load: async () => (await import("./certificates/rotate-command.ts")).rotateCommand(),
  },
  {
    name: "revoke",
    summary: "Revoke certificates",
    load: async () => (await import("./certificates/revoke-command.ts")).revokeCommand(),
  },
  {
    name: "controller",
    summary: "The controller's commands, to run on a node itself",
    load: async () => (await import("./controller/daemon-commands.ts")).controllerCommand(),
  },
  {
    name: "agent",
    summary: "The agent's commands, to run on a node itself",
    load: async () => (await import("./controller/daemon-commands.ts")).agentCommand(),
  },
  {
    name: "explain",
    summary: "Explain an error code, and what to do",
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
