import { userInfo } from "node:os";
import { z } from "zod";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { defineAction } from "#engine/orchestrate/action.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";
import { createCluster } from "#pki/cluster.ts";
import { readConfig } from "#pki/contexts.ts";
import { placeOf } from "./cluster-place.ts";
import { refuseSecondCluster } from "./refuse-second-cluster.ts";

const Args = z.strictObject({
  controller: z.string().optional().describe("Endpoint of the first controller; unless given it is noted once it runs"),
});

/** Makes the cluster's CA on this machine if the run's context is not there yet; one that is there stays as it is. */
export const pkiCreateCluster = defineAction({
  name: "pki.createCluster",
  summary: "Makes the cluster's CA and the context on this machine, if they are not there yet.",
  outputs: [],
  args: Args,
  async run({ controller }, context) {
    const name = await missingContext(controller, context);
    if (name === undefined) return { changed: false, outputs: {} };
    const { folder } = await createCluster({
      ...placeOf(context),
      context: name,
      controllers: controller === undefined ? [] : [formatEndpoint(parseEndpoint(controller))],
      operator: userInfo().username,
      passphrase: await newPassphrase(context),
      now: Date.now(),
    });
    context.note(`created the cluster “${name}” in ${folder}; keep the passphrase of its CA's keys`);
    return { changed: true, outputs: {} };
  },
  async plan({ controller }, context) {
    const name = await missingContext(controller, context);
    if (name === undefined) return { changed: false, outputs: {} };
    context.note(`would create the cluster “${name}”`);
    return { changed: true, outputs: {} };
  },
});

/** The context that the run is about, if it has to be made. @throws KcoreError CLUSTER_EXISTS */
async function missingContext(controller: string | undefined, context: ActionContext): Promise<string | undefined> {
  const { contexts, "current-context": current } = await readConfig(placeOf(context));
  const name = context.context ?? current ?? "default";
  if (Object.hasOwn(contexts, name)) return undefined;
  await refuseSecondCluster(context.nodes.values(), controller === undefined ? [] : [controller]);
  return name;
}

/** One that was typed is typed twice: a mistake would be found only when it is needed next. */
async function newPassphrase({ givenPassphrase, passphrase, ask }: ActionContext): Promise<string> {
  const first = await passphrase();
  if (givenPassphrase !== undefined) return first;
  const again = await ask({ kind: "passphrase", text: "Once more, for a new cluster", secret: true });
  if (again === first) return first;
  throw new KcoreError({ code: "USAGE", message: "the two passphrases differ", hint: "run it again" });
}
