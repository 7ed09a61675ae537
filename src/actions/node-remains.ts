import { z } from "zod";
import { nonBlankLines } from "#base/text.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { managedThings } from "#engine/orchestrate/managed.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { diskName } from "#engine/step/disk-names.ts";
import { isController, nodeOf } from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  found: z.string().default("").describe("A line for each thing that was found on the machine"),
  storageOnly: z.boolean().default(false).describe("Only the storage was taken out"),
  wiped: z.boolean().default(false).describe("The disks for volumes were wiped"),
  unreachable: z.boolean().default(false).describe("Nothing was done on the machine"),
});
type Args = z.output<typeof Args>;

/** The most things of states that are named. */
const mostNamed = 20;
/** Orchestrations whose things a removal removes. */
const ownStages = /^(deploy_node|cluster|remove_node|replace_node) /;

/** Names the things that stay on the machine of a removed node, and the commands that bring the machine back. */
export const nodeRemains = defineAction({
  name: "node.remains",
  summary: "Says what stays on a removed node's machine, and the next commands.",
  outputs: [],
  args: Args,
  run: (args, context) => Promise.resolve(tell(args, context)),
  plan: () => Promise.resolve({ changed: false, outputs: {} }),
});

function tell(args: Args, context: ActionContext): ActionResult {
  const node = nodeOf("node.remains", args.node, context);
  const things = [...placesOf(node, args), ...thingsOfStates(node, context)];
  if (things.length > 0) context.warn(`on ${node.name} stay: ${things.join(", ")}`);
  context.note(nextFor(node, args));
  return { changed: false, outputs: {} };
}

function placesOf({ disks }: NodeEntry, { found, wiped, unreachable, storageOnly }: Args): readonly string[] {
  const volumes = disks.filter(({ use }) => use === "volumes").map((disk) => diskName(disk).value);
  const data = wiped && !unreachable ? [] : volumes.map((disk) => `the data on disk ${disk}`);
  if (storageOnly) return unreachable ? ["its mounts", ...data] : data;
  const deployed = "the agent, units, runtime, mounts, and the revoked keys in /etc/kcore";
  return [...(unreachable ? [deployed] : nonBlankLines(found)), ...data];
}

/** The things that the project's own states made on the node, as far as the bastion's record knows. */
function thingsOfStates(node: NodeEntry, { project }: ActionContext): readonly string[] {
  const kept = managedThings(project).read(node);
  const all = kept
    .filter(({ stage }) => !ownStages.test(stage))
    .flatMap(({ things }) => things.map(({ what }) => what));
  const names = [...new Set(all)];
  const more = names.length - mostNamed;
  return [...names.slice(0, mostNamed), ...(more > 0 ? [`and ${more} more that states made`] : [])];
}

function nextFor(node: NodeEntry, { storageOnly, unreachable }: Args): string {
  const { name } = node;
  if (storageOnly) return `take the disks of ${name} out of the roster: the next deployment would mount them again`;
  const again = unreachable ? `if the machine is back, the same command without unreachable clears it; ` : "";
  const others = isController(node) ? `other nodes forget it: kcore orchestrate deploy_node --on 'not ${name}'; ` : "";
  return `${again}${others}${name} comes back with a new id: kcore roster adopt ${name}, then kcore orchestrate deploy_node ${name}`;
}
