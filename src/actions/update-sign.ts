import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { contextFolder, findContext } from "#pki/contexts.ts";
import { openIssuer } from "#pki/rotate-bastion.ts";
import { signStatement } from "#pki/statement.ts";
import { OwnershipStatement, UpdateStatement } from "#rollout/spec.ts";
import { checkClockOnce, contextHomeOf } from "./cluster-context.ts";
import { onceARun } from "./once-a-run.ts";

/**
 * Signs an update, and the run as its owner, with the bastion's sub-CA: nodes obey only signed updates and owners. Gives `order` and
 * `epoch` for runtime.updated. The run's epoch is its time in ms, which is above the counted epochs of controllers and all epochs of earlier runs. A dry
 * run signs nothing, and asks for no passphrase.
 * ```yaml
 * - { id: sign, run: update.sign, update: release-1, owner: me, spec: "{{params.spec}}", bundle: "{{params.bundle}}", at: "{{run.time}}" }
 * ```
 */
export const updateSign = defineAction({
  name: "update.sign",
  summary: "Signs an update and its owner with the bastion's CA.",
  outputs: ["epoch", "order"],
  args: z.strictObject({
    update: z.string().describe("The update's name."),
    owner: z.string().describe("The owner, from which nodes take orders then."),
    spec: z.record(z.string(), z.unknown()).describe("The spec of a ClusterUpdate."),
    bundle: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("The bundle of kcore's runtime that the update brings; none, or an empty map, for NixOS systems."),
    at: z.string().describe("The time of the signature, ISO 8601 in UTC; a resumed run gives the same time."),
  }),
  async run({ update: name, owner, spec, bundle = {}, at }, context) {
    const { name: cluster } = await findContext(contextHomeOf(context), context.context);
    const folder = contextFolder(context.home, cluster);
    const authority = await onceARun(`authority ${folder}`, context, async () => {
      await checkClockOnce(context);
      return openIssuer(folder, await context.passphrase());
    });
    const epoch = Date.parse(at);
    const common = { cluster: authority.cluster, name, signedAt: at };
    const sign = (document: UpdateStatement | OwnershipStatement) => signStatement(JSON.stringify(document), authority);
    const signed = sign(
      UpdateStatement.parse({
        kind: "ClusterUpdate",
        spec,
        ...(bundle["sha256"] !== undefined && { bundle }),
        ...common,
      }),
    );
    const ownership = sign(OwnershipStatement.parse({ kind: "ClusterUpdateOwner", owner, epoch, ...common }));
    return { changed: false, outputs: { order: JSON.stringify({ signed, ownership }).slice(1, -1), epoch } };
  },
  plan: () => Promise.resolve({ changed: false, outputs: { order: "", epoch: 0 } }),
});
