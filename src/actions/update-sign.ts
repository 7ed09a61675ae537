import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { openAuthority } from "#pki/cluster.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { signStatement } from "#pki/statement.ts";
import { placeOf } from "./cluster-place.ts";
import { onceARun } from "./once-a-run.ts";

/**
 * Signs what an update says with the bastion's sub-CA: nodes carry out nothing else. A dry run signs nothing, and asks for no passphrase.
 * ```yaml
 * - { id: sign, run: update.sign, statement: "{{params.statement}}" }
 * ```
 */
export const updateSign = defineAction({
  name: "update.sign",
  summary: "Signs a statement of an update with the bastion's CA.",
  args: z.strictObject({
    statement: z.string().min(1).describe("What is signed, JSON."),
  }),
  async run({ statement }, context) {
    const { name } = await findContext(placeOf(context), context.context);
    const folder = contextFolder(context.home, name);
    const authority = await onceARun(`authority ${folder}`, context, async () =>
      openAuthority(folder, await context.passphrase()),
    );
    return { changed: false, outputs: { ...signStatement(statement, authority) } };
  },
  plan: ({ statement }) =>
    Promise.resolve({ changed: false, outputs: { statement, signature: "", signer: "" } }),
});
