import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { keepSealed, parseSealed } from "#pki/escrow.ts";
import { nodeOf, openContext } from "./cluster-place.ts";

/** Keeps what `luks.escrowed` told of a node: its containers' recovery keys, sealed. `kcore disk recovery-key` opens them. */
export const pkiEscrow = defineAction({
  name: "pki.escrow",
  summary: "Keeps the sealed recovery keys of a node's encrypted disks on this machine.",
  args: z.strictObject({
    node: z.string().optional().describe("The node; else the stage's own."),
    sealed: z.string().describe("The fact “sealed” of luks.escrowed."),
  }),
  async run({ node, sealed }, context) {
    const { name, id } = nodeOf("pki.escrow", node, context);
    const { folder } = await openContext(context);
    const fresh = await keepSealed(folder, { node: name, id }, parseSealed(sealed, Date.now()));
    if (fresh > 0) context.note(`keeps ${fresh} new sealed recovery ${fresh === 1 ? "key" : "keys"} of ${name}`);
    return { changed: fresh > 0, outputs: {} };
  },
  plan: () => Promise.resolve("unknown" as const),
});
