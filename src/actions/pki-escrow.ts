import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { keepSealedKeys, parseSealedKeys, parseInitrdEndpoint } from "#pki/escrow.ts";
import { nodeOf, openContext } from "./cluster-context.ts";

const args = z.strictObject({
  node: z.string().optional().describe("The node; else the stage's own."),
  sealed: z.string().describe("The fact “sealed” of luks.escrowed."),
  unlock: z.string().default("").describe("The fact “unlock” of luks.root."),
});

/**
 * Keeps the output of `luks.escrowed` of a node: the sealed recovery keys of its containers, which `kcore disk recovery-key` opens. The
 * output of `luks.root` has port and host key of the initrd that asks for a key, so that `kcore disk unlock` can send one.
 */
export const pkiEscrow = defineAction({
  name: "pki.escrow",
  summary: "Keeps the sealed recovery keys of a node's encrypted disks on this machine.",
  outputs: [],
  args,
  run: (given, context) => keep(given, context, false),
  plan: (given, context) => keep(given, context, true),
});

async function keep(
  { node, sealed, unlock }: z.output<typeof args>,
  context: ActionContext,
  isDry: boolean,
): Promise<ActionResult> {
  const { name, id } = nodeOf("pki.escrow", node, context);
  const { folder } = await openContext(context);
  const escrow = { keys: parseSealedKeys(sealed, Date.now()), unlock: parseInitrdEndpoint(unlock) };
  const news = await keepSealedKeys(folder, { node: name, id }, escrow, { isDry });
  const words = isDry ? "would keep" : "keeps";
  if (news.keys > 0)
    context.note(`${words} ${news.keys} new sealed recovery ${news.keys === 1 ? "key" : "keys"} of ${name}`);
  if (news.unlock) context.note(`${words} the host key of ${name} while it waits to be unlocked`);
  return { changed: news.keys > 0 || news.unlock, outputs: {} };
}
