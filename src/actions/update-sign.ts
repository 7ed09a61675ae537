import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { signStatement } from "#pki/statement.ts";
import { Statement } from "#rollout/spec.ts";
import { checkClock, placeOf } from "./cluster-place.ts";
import { onceARun } from "./once-a-run.ts";

/**
 * Signs what an update says with the bastion's sub-CA: nodes carry out nothing else. Gives `statement`, `signature` and `signer` for
 * runtime.updated. A dry run signs nothing, and asks for no passphrase.
 * ```yaml
 * - { id: sign, run: update.sign, update: release-1, spec: "{{params.spec}}", bundle: "{{params.bundle}}", at: "{{run.time}}" }
 * ```
 */
export const updateSign = defineAction({
  name: "update.sign",
  summary: "Signs what an update says with the bastion's CA.",
  outputs: ["signature", "signer", "statement"],
  args: z.strictObject({
    update: z.string().describe("The update's name."),
    spec: z.record(z.string(), z.unknown()).describe("What it says: the spec of a ClusterUpdate."),
    bundle: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("The bundle of kcore's runtime that it brings; none for NixOS systems."),
    at: z.string().describe("When it is signed, ISO 8601 in UTC; a resumed run says the same again."),
  }),
  async run({ update: name, spec, bundle, at }, context) {
    const { name: cluster } = await findContext(placeOf(context), context.context);
    const folder = contextFolder(context.home, cluster);
    const authority = await onceARun(`authority ${folder}`, context, async () => {
      await checkClock(context);
      return openIssuer(folder, await context.passphrase());
    });
    const said = { kind: "ClusterUpdate", cluster: authority.cluster, name, spec, bundle, signedAt: at };
    return { changed: false, outputs: { ...signStatement(JSON.stringify(Statement.parse(said)), authority) } };
  },
  plan: () => Promise.resolve({ changed: false, outputs: { statement: "", signature: "", signer: "" } }),
});
