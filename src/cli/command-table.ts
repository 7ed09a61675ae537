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
    name: "orchestrate",
    summary: "Run an orchestration over nodes",
    load: async () => (await import("./commands/orchestrate.ts")).orchestrateCommand(),
  },
  {
    name: "state",
    summary: "List, show and apply states",
    load: async () => (await import("./commands/state.ts")).stateCommand(),
  },
  {
    name: "exec",
    summary: "Run one command on nodes",
    load: async () => (await import("./commands/exec.ts")).execCommand(),
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
    name: "runs",
    summary: "Recorded and living runs",
    load: async () => (await import("./commands/runs.ts")).runsCommand(),
  },
];
