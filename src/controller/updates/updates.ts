import type { Credentials } from "#api/client.ts";
import { describeError } from "#api/log.ts";
import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { RequestAction } from "#rollout/records.ts";
import type { NodeNames } from "../cluster/node-names.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import { applyUpdate, type ApplyParts } from "./apply-update.ts";
import { openBundleFetcher, wantedBundles } from "./bundle-fetcher.ts";
import type { BundleStore } from "./bundles.ts";
import { openExchange } from "./exchange.ts";
import { startOwnerLoop } from "./owner-loop.ts";
import { makePlan } from "./plan-update.ts";
import { inputOf, readNodes, presentHash } from "./known-input.ts";
import { removeOld, removeSettledUpdate, type RetentionLimits } from "./removal.ts";
import type { UpdateRecords } from "./update-records.ts";
import { summarizeUpdate, viewUpdate } from "./update-views.ts";
import { answerHook, attendUpdate, takeOver, noteRequest } from "./operator-requests.ts";

export interface UpdatesParts extends ApplyParts {
  readonly names: Pick<NodeNames, "find">;
  readonly members: () => readonly string[];
  readonly bundles: BundleStore;
  readonly credentials: () => Credentials;
  readonly random: () => number;
  /** The limits of kept updates; absent: the default. */
  readonly kept?: RetentionLimits;
}

/** Cluster updates: the operators' requests, the nodes' exchange, and the owner's work. */
export type ClusterUpdates = ReturnType<typeof manageUpdates>;

/** The interval of removals of old updates, and of the remaining registers of removed updates. */
const tidyMs = 60_000;

export function manageUpdates(parts: UpdatesParts) {
  const { records, index, controllerId, members, log } = parts;
  const exchange = openExchange(parts);
  const loop = startOwnerLoop(parts);
  const { bundles: store, clock, credentials, random } = parts;
  const fetcher = openBundleFetcher({
    store,
    wanted: () => wantedBundles(parts),
    peers: () => members().flatMap((id) => (id === controllerId ? [] : (parts.endpointOf(id) ?? []))),
    credentials,
    clock,
    random,
    log,
  });
  let working = Promise.resolve();
  const tidy = (): void => {
    working = working
      .then(() => removeOld(parts, parts.kept))
      .catch((error: unknown) => log.warn("old updates could not be removed", describeError(error)));
  };
  let stopTidying = (): void => undefined;
  // Repeated: a starting controller reaches no other one yet, and a node's report may come late.
  const tidyRepeatedly = (): void => {
    tidy();
    stopTidying = parts.timers.after(tidyMs, tidyRepeatedly);
  };
  fetcher.fetchMissing();
  tidyRepeatedly();
  const unwatch = records.replica.watch((changed) => {
    const touched = changed.filter((key) => key.startsWith("update/"));
    if (touched.length === 0) return;
    loop.nudge(new Set(touched.map((key) => key.split("/")[1] ?? "")));
    if (touched.some((key) => key.endsWith("/head"))) fetcher.fetchMissing();
    if (touched.some((key) => key.endsWith("/progress"))) tidy();
  });
  const known = (name: string): UpdateRecords => {
    const update = index.read(name);
    if (update) return update;
    throw new Refused(404, "UPDATE_UNKNOWN", `there is no update “${name.slice(0, 80)}”`, "kcore update cluster list");
  };
  const now = (): string => new Date(parts.clock()).toISOString();
  return {
    ...exchange,
    list: (): AnswerOf<"listUpdates"> => {
      const nodes = readNodes(parts);
      return { updates: [...index.all()].map((update) => summarizeUpdate(parts, update, nodes)) };
    },
    get: (name: string): AnswerOf<"getUpdate"> => viewUpdate(parts, known(name)),
    plan: (draft: AcceptedBodyOf<"planUpdate">) => makePlan(parts, draft),
    apply: (name: string, body: AcceptedBodyOf<"applyUpdate">, by: string) =>
      applyUpdate(parts, name, body, { by, at: now() }),
    async approve(
      name: string,
      { generation, hash }: AcceptedBodyOf<"approveUpdate">,
      by: string,
    ): Promise<AnswerOf<"approveUpdate">> {
      const update = known(name);
      const present = presentHash(update, inputOf(parts, update).nodeIds);
      if (update.head.value.generation !== generation || present !== hash)
        throw new Refused(
          409,
          "UPDATE_PLAN_CHANGED",
          `“${name}” is not what was approved: it is generation ${update.head.value.generation}, or means other nodes now`,
          `look again: kcore update cluster plan ${name}`,
        );
      return records.put([{ key: keys.update(name).approved, value: { generation, hash, by, at: now() } }]);
    },
    request: (name: string, action: RequestAction, body: AcceptedBodyOf<"cancelUpdate">, by: string) =>
      noteRequest(parts, known(name), action, { ...omitUndefined(body), by, at: now() }),
    takeOver: (name: string, body: AcceptedBodyOf<"takeOverUpdate">, by: string) =>
      takeOver(parts, known(name), body, by),
    remove: (name: string, by: string) => removeSettledUpdate(parts, known(name), by),
    attend: (name: string, body: AcceptedBodyOf<"attendUpdate">, by: string) =>
      attendUpdate(parts, known(name), body, by),
    answerHook: (name: string, answer: AcceptedBodyOf<"answerHook">) =>
      answerHook(parts, known(name), { ...answer, node: parts.names.find(answer.node) }),
    async stop() {
      unwatch();
      stopTidying();
      exchange.stop();
      await fetcher.stop();
      await working;
      await loop.stop();
      index.stop();
    },
  };
}
