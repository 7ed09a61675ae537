import { createHash } from "node:crypto";
import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { firstCertificate } from "#pki/chain.ts";
import { identityOf } from "#pki/identity.ts";
import { openAuthority } from "#pki/cluster.ts";
import { openContext } from "./cluster-place.ts";

/**
 * Tries the passphrase that was given at the start of the run, so that a wrong one is found before anything was changed.
 * One that was not given is not asked for here: it may not be needed at all.
 */
export const pkiCheckPassphrase = defineAction({
  name: "pki.checkPassphrase",
  outputs: ["cluster", "controllers", "root"],
  summary:
    "Tries the passphrase of the cluster CA's keys, if it was given, and tells the cluster, its root and its controllers.",
  args: z.strictObject({}),
  run: (_, context) => check(context),
  plan: (_, context) => check(context),
});

async function check(context: ActionContext): Promise<ActionResult> {
  const { givenPassphrase } = context;
  const { folder, ca, cert, controllers } = await openContext(context);
  if (givenPassphrase !== undefined) await openAuthority(folder, givenPassphrase);
  const { cluster } = identityOf(firstCertificate(cert), "client");
  // As memberOf of fact.assert makes it on a node, with a shell's means.
  const text = firstCertificate(ca)
    .toString()
    .replaceAll(/^-.*$|\s/gm, "");
  const root = createHash("sha256").update(text).digest("hex").slice(0, 16);
  return { changed: false, outputs: { cluster, root, controllers: [...controllers] } };
}
