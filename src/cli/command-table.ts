import type { Command } from "commander";

/** One command as `kcore help` lists it; its file is loaded only when it is used. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** Every command that works, in the order of the help. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: "init",
    summary: "Create a new project",
    load: async () => (await import("./commands/init.ts")).initCommand(),
  },
  {
    name: "lab",
    summary: "Throwaway real machines on this one",
    load: async () => (await import("./lab.ts")).labCommand(),
  },
  {
    name: "modules",
    summary: "The catalogue of what a step can keep in order",
    load: async () => (await import("./commands/modules.ts")).modulesCommand(),
  },
  {
    name: "roster",
    summary: "The machines and how to reach them",
    load: async () => (await import("./commands/roster.ts")).rosterCommand(),
  },
  {
    name: "ping",
    summary: "Connect to nodes and tell how long it took",
    load: async () => (await import("./commands/ping.ts")).pingCommand(),
  },
  {
    name: "facts",
    summary: "Gather what nodes say about themselves",
    load: async () => (await import("./commands/facts.ts")).factsCommand(),
  },
  {
    name: "exec",
    summary: "Run one command on nodes",
    load: async () => (await import("./commands/exec.ts")).execCommand(),
  },
  {
    name: "state",
    summary: "List, show and apply states",
    load: async () => (await import("./commands/state.ts")).stateCommand(),
  },
  {
    name: "orchestrate",
    summary: "Run an orchestration over nodes",
    load: async () => (await import("./commands/orchestrate.ts")).orchestrateCommand(),
  },
  {
    name: "runs",
    summary: "Recorded and living runs",
    load: async () => (await import("./commands/runs.ts")).runsCommand(),
  },
  {
    name: "create",
    summary: "Create a cluster's certificate authority",
    load: async () => (await import("./commands/create.ts")).createCommand(),
  },
  {
    name: "config",
    summary: "Contexts: the clusters this user knows",
    load: async () => (await import("./commands/config.ts")).configCommand(),
  },
  {
    name: "get",
    summary: "What the cluster knows",
    load: async () => (await import("./commands/get.ts")).getCommand(),
  },
  {
    name: "top",
    summary: "Watch the whole cluster live",
    load: async () => (await import("./commands/top.ts")).topCommand(),
  },
  {
    name: "health",
    summary: "Ask the controllers whether they are well",
    load: async () => (await import("./commands/health.ts")).healthCommand(),
  },
  {
    name: "apply",
    summary: "Make it so, as manifests say",
    load: async () => (await import("./commands/apply.ts")).applyCommand(),
  },
  {
    name: "diff",
    summary: "What kcore apply would change",
    load: async () => (await import("./commands/apply.ts")).diffCommand(),
  },
  {
    name: "describe",
    summary: "One thing of the cluster in all its detail",
    load: async () => (await import("./commands/describe.ts")).describeCommand(),
  },
  {
    name: "node",
    summary: "The cluster's nodes: approve, reject, label, taint, remove",
    load: async () => (await import("./commands/node.ts")).nodeCommand(),
  },
  {
    name: "conflict",
    summary: "Settle edits that did not know of each other",
    load: async () => (await import("./commands/conflict.ts")).conflictCommand(),
  },
  {
    name: "rotate",
    summary: "New keys and certificates while the cluster runs",
    load: async () => (await import("./commands/rotate.ts")).rotateCommand(),
  },
  {
    name: "revoke",
    summary: "Make certificates worthless",
    load: async () => (await import("./commands/revoke.ts")).revokeCommand(),
  },
  {
    name: "controller",
    summary: "The cluster's controller, on a node",
    load: async () => (await import("./commands/daemons.ts")).controllerCommand(),
  },
  {
    name: "agent",
    summary: "The agent of a deployed node",
    load: async () => (await import("./commands/daemons.ts")).agentCommand(),
  },
  {
    name: "completion",
    summary: "Let your shell complete kcore's words",
    load: async () => (await import("./commands/completion.ts")).completionCommand(),
  },
];
