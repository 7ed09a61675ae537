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
];
