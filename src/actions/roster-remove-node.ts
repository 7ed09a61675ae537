import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { replaceFile } from "#base/file.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { removeNode } from "#engine/roster/remove.ts";
import { rosterFileNames } from "#engine/roster/roster-paths.ts";
import { KcoreError } from "#errors/problem.ts";
import { nodeOf } from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  successor: z.string().default("").describe("The node that takes the place; it stays in the roster"),
});
type Args = z.output<typeof Args>;

/** Takes a node's entry out of its roster file; every other line stays. The commit is the operator's. */
export const rosterRemoveNode = defineAction({
  name: "roster.removeNode",
  summary: "Takes a node's entry out of the roster's file; every other line stays, and nothing is committed.",
  outputs: [],
  args: Args,
  run: (args, context) => runInTurn(() => remove(args, context, true)),
  plan: (args, context) => remove(args, context, false),
});

let lastEdit: Promise<unknown> = Promise.resolve();

/** Runs the work after all earlier work: the nodes of a run may stand in one file. */
function runInTurn<T>(work: () => Promise<T>): Promise<T> {
  const next = lastEdit.then(work, work);
  lastEdit = next.catch(() => undefined);
  return next;
}

async function remove({ node, successor }: Args, context: ActionContext, write: boolean): Promise<ActionResult> {
  const { name: wanted } = nodeOf("roster.removeNode", node, context);
  const { nodes, targets, ended } = context;
  // The run takes its other targets out of the roster, too, unless their removal failed.
  const isLeaving = (name: string): boolean =>
    targets.includes(name) && name !== successor && (ended.get(name)?.outcome ?? "done") === "done";
  const through = [...nodes.values()].filter(({ name, jump }) => jump.includes(wanted) && !isLeaving(name));
  if (through.length > 0)
    throw cannotRemove(wanted, `${through.map((one) => one.name).join(", ")} is reached through it`);
  for (const file of rosterFileNames(context.project).map((one) => `roster/${one}`)) {
    const path = join(context.project, file);
    const text = await readFile(path, "utf8");
    const edited = removeNode({ file, text }, wanted);
    if (edited === undefined) continue;
    if (!write) return { changed: true, outputs: {} };
    const { mode } = await stat(path);
    await replaceFile(path, edited, { mode: mode & 0o777 });
    context.note(`${wanted} is out of ${file}; the commit is yours`);
    return { changed: true, outputs: {} };
  }
  throw cannotRemove(wanted, "a program or an address in roster/ prints it");
}

function cannotRemove(node: string, why: string): KcoreError {
  return new KcoreError({
    code: "ROSTER_EDIT",
    message: `${node} cannot be taken out of the roster: ${why}`,
    hint: "change the roster by hand; everything else of the removal is done",
  });
}
