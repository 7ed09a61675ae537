import { Command, InvalidArgumentError, Option } from "commander";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError } from "#errors/problem.ts";
import { addProjectOption, collect, type CommonFlags } from "../options.ts";
import { findProject } from "../project/find-project.ts";
import { readSettings } from "../project/project-settings.ts";

interface Flags extends CommonFlags {
  readonly concurrency: number;
  readonly dc?: string;
  readonly label?: readonly string[];
  readonly jump?: string;
}

const CONCURRENCY = 50;

/** `kcore worker`. */
export function workerCommand(): Command {
  return addProjectOption(new Command("worker"))
    .description("Take nodes of runs from the project's queue, until Ctrl-C")
    .addOption(
      new Option("--concurrency <n>", "at most so many nodes at a time").argParser(parseCount).default(CONCURRENCY),
    )
    .option("--dc <name>", "only nodes of this datacenter")
    .option("--label <key=value>", "only nodes with this label (repeatable)", collect)
    .option("--jump <name>", "only nodes behind this jump host")
    .addHelpText(
      "after",
      `
Examples:
  kcore worker
  kcore worker --dc DC2 --concurrency 100
  kcore worker --label zone=dmz

A node goes to the workers with the most of these terms among those that take it. The worker uses its own SSH keys and
reads secrets by its own means; kcore queue key makes its keys. Ctrl-C lets the nodes at work come to their ends;
again: it leaves them to other workers. docs/scale.md has the set-up.`,
    )
    .action(work);
}

async function work({ concurrency, dc, label: labels, jump, ...flags }: Flags): Promise<void> {
  const project = findProject(flags.project);
  const { queue: settings } = readSettings(project);
  if (!settings)
    throw new KcoreError({
      code: "QUEUE_UNSET",
      message: "kcore.yaml names no queue",
      hint: "queue: { url: …, members: […] }; docs/scale.md",
    });
  const leave = new AbortController();
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      if (leave.signal.aborted) process.exit(130);
      say("no further node is taken; again: leave those at work to other workers");
      leave.abort();
    });
  const reach = omitUndefined({ dc, labels, jump });
  const { serveRuns } = await import("./serve-runs.ts");
  await serveRuns({ project, settings, reach, concurrency, say, signal: leave.signal });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 10_000)
    throw new InvalidArgumentError("a number from 1 to 10000");
  return count;
}
