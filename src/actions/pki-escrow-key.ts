import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { makeEscrowKey, readEscrowKey } from "#pki/escrow.ts";
import { openContext } from "./cluster-context.ts";

/**
 * Gives `publicKey`, for which recovery keys of LUKS containers are sealed, in PEM. The key is made when it is first needed, with the
 * passphrase of the CA's keys. `publicKey` is empty if none of the run's nodes encrypts its disks (`vars.encryptDisks`, `vars.encryptOs`).
 */
export const pkiEscrowKey = defineAction({
  name: "pki.escrowKey",
  summary: "Gives the public key that recovery keys of encrypted disks are sealed for.",
  outputs: ["publicKey"],
  args: z.strictObject({}),
  async run(_, context) {
    const folder = await escrowFolder(context);
    if (folder === undefined) return unchanged("");
    const known = await readEscrowKey(folder);
    if (known !== undefined) return unchanged(known);
    const made = await makeEscrowKey(folder, await context.passphrase());
    context.note("made the escrow key: back it up with the context's folder");
    return { changed: true, outputs: { publicKey: made } };
  },
  async plan(_, context) {
    const folder = await escrowFolder(context);
    if (folder === undefined) return unchanged("");
    const known = await readEscrowKey(folder);
    return known === undefined ? "unknown" : unchanged(known);
  },
});

async function escrowFolder(context: ActionContext): Promise<string | undefined> {
  const encrypts = context.targets.some((name) => {
    const { vars = {} } = context.nodes.get(name) ?? {};
    return vars["encryptDisks"] === true || vars["encryptOs"] === true;
  });
  return encrypts ? (await openContext(context)).folder : undefined;
}

function unchanged(publicKey: string): ActionResult {
  return { changed: false, outputs: { publicKey } };
}
