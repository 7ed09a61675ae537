import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { parsePlainYaml, printYaml } from "#engine/source/plain.ts";
import { openAuthority } from "#pki/cluster.ts";
import { loadContext } from "#pki/contexts.ts";

/**
 * Tries the passphrase that was given at the start of the run, so that a wrong one is found before anything was changed.
 * One that was not given is not asked for here: it may not be needed at all.
 */
export const pkiCheckPassphrase = defineAction({
  name: "pki.checkPassphrase",
  summary: "Tries the passphrase of the cluster CA's keys, if it was given.",
  args: z.strictObject({}),
  run: (_, context) => check(context),
  plan: (_, context) => check(context),
});

async function check({ home, context: name, givenPassphrase }: ActionContext): Promise<ActionResult> {
  if (givenPassphrase !== undefined) {
    const codec = { parse: parsePlainYaml, print: printYaml };
    const { folder } = await loadContext({ home, codec }, name);
    await openAuthority(folder, givenPassphrase);
  }
  return { changed: false, outputs: {} };
}
