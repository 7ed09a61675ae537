import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { openAuthority } from "#pki/cluster.ts";
import { openContext } from "./cluster-place.ts";

/**
 * Tries the passphrase that was given at the start of the run, so that a wrong one is found before anything was changed.
 * One that was not given is not asked for here: it may not be needed at all.
 */
export const pkiCheckPassphrase = defineAction({
  name: "pki.checkPassphrase",
  summary: "Tries the passphrase of the cluster CA's keys, if it was given.",
  outputs: [],
  args: z.strictObject({}),
  run: (_, context) => check(context),
  plan: (_, context) => check(context),
});

async function check(context: ActionContext): Promise<ActionResult> {
  const { givenPassphrase } = context;
  if (givenPassphrase !== undefined) await openAuthority((await openContext(context)).folder, givenPassphrase);
  return { changed: false, outputs: {} };
}
