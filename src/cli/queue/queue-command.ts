import { hostname } from "node:os";
import { Command } from "commander";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { memberKey, publicHalf } from "#queue/member-key.ts";
import { addResultOption } from "../options.ts";
import { kcoreHome } from "../process/kcore-home.ts";

/** `kcore queue`. */
export function queueCommand(): Command {
  const command = new Command("queue").description("This machine's part in a queue of runs (docs/scale.md)");
  addResultOption(command.command("key"))
    .description("Make this machine's keys for the queue, and print its entry for kcore.yaml")
    .addHelpText("after", "\nExamples:\n  kcore queue key\n  kcore queue key -o json")
    .action(printKey);
  return command;
}

async function printKey({ output }: { readonly output: "table" | "json" }): Promise<void> {
  const half = await publicHalf(await memberKey(kcoreHome(), { make: true }));
  const member = { name: hostname().toLowerCase(), roles: ["coordinator", "worker"], ...half };
  if (output === "json") process.stdout.write(`${JSON.stringify(member, undefined, 2)}\n`);
  else process.stdout.write(printYaml({ queue: { members: [member] } }));
}
