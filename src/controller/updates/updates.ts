import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { Statement, type Bundle, type SignedStatement } from "#rollout/spec.ts";
import { lookAtHooks } from "#rollout/hooks.ts";
import type { WishAction } from "#rollout/records.ts";
import { verifyStatement } from "#pki/statement.ts";
import { defined } from "#optional/defined.ts";
import { describeError } from "#api/log.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import type { NodeNames } from "../cluster/node-names.ts";
import type { Credentials } from "#api/client.ts";
import type { BundleStore } from "./bundles.ts";
import { fetchBundles } from "./bundle-fetcher.ts";
import { openExchange, type Exchange } from "./exchange.ts";
import { isSettled, presentHash, startOwnerLoop, viewOf } from "./owner-loop.ts";
import { planUpdate } from "./plan-update.ts";
import { knowNodes } from "./rollout-nodes.ts";
import { grantClaims, takeOver, unknownUpdate } from "./takeover.ts";
import { hashOf, type UpdateIndex, type UpdateRecords } from "./update-records.ts";
import { summarizeUpdate, viewUpdate, type ViewParts } from "./update-views.ts";

export interface UpdatesParts extends ViewParts {
  readonly cluster: string;
  readonly rootPem: () => string;
  readonly names: Pick<NodeNames, "find">;
  readonly members: () => readonly string[];
  readonly bundles: BundleStore;
  readonly credentials: () => Credentials;
  readonly random: () => number;
  readonly monotonic: () => number;
}

/** Cluster updates, as operators and nodes ask for them. */
export interface Updates extends Pick<Exchange, "concerns" | "exchange"> {
  readonly list: () => AnswerOf<"listUpdates">;
  readonly get: (name: string) => AnswerOf<"getUpdate">;
  readonly plan: (draft: AcceptedBodyOf<"planUpdate">) => AnswerOf<"planUpdate">;
  readonly apply: (name: string, signed: SignedStatement, by: string) => Promise<AnswerOf<"applyUpdate">>;
  readonly approve: (
    name: string,
    body: AcceptedBodyOf<"approveUpdate">,
    by: string,
  ) => Promise<AnswerOf<"approveUpdate">>;
  readonly wish: (
    name: string,
    action: WishAction,
    body: AcceptedBodyOf<"cancelUpdate">,
    by: string,
  ) => Promise<AnswerOf<"cancelUpdate">>;
  readonly takeOver: (
    name: string,
    body: AcceptedBodyOf<"takeOverUpdate">,
    by: string,
  ) => Promise<AnswerOf<"takeOverUpdate">>;
  readonly answerHook: (name: string, body: AcceptedBodyOf<"answerHook">) => Promise<AnswerOf<"answerHook">>;
  readonly stop: () => Promise<void>;
}

export function manageUpdates(parts: UpdatesParts): Updates {
  const { records, index, controllerId, members, log } = parts;
  const exchange = openExchange(records, index, parts.monotonic);
  const loop = startOwnerLoop(parts);
  const { bundles: store, clock, credentials, random } = parts;
  const fetcher = fetchBundles({
    store,
    wanted: () => wantedBundles(parts),
    peers: () => members().flatMap((id) => (id === controllerId ? [] : (parts.endpointOf(id) ?? []))),
    credentials,
    clock,
    random,
    log,
  });
  let granting = Promise.resolve();
  const grant = (): void => {
    granting = granting
      .then(() => grantClaims({ records, index, controllerId }))
      .catch((error: unknown) => log.warn("a claim to an update could not be answered", describeError(error)));
  };
  fetcher.look();
  grant();
  const unwatch = records.replica.watch((changed) => {
    const touched = changed.filter((key) => key.startsWith("update/"));
    if (touched.length === 0) return;
    loop.nudge(new Set(touched.map((key) => key.split("/")[1] ?? "")));
    if (touched.some((key) => key.endsWith("/head"))) fetcher.look();
    if (touched.some((key) => key.includes("/claim/"))) grant();
  });
  const known = (name: string): UpdateRecords => {
    const update = index.read(name);
    if (update) return update;
    throw unknownUpdate(name);
  };
  const now = (): string => new Date(parts.clock()).toISOString();
  return {
    ...exchange,
    list: () => {
      const nodes = knowNodes(parts);
      return { updates: [...index.all()].map((update) => summarizeUpdate(parts, update, nodes)) };
    },
    get: (name) => viewUpdate(parts, known(name)),
    plan: (draft) => planUpdate(parts, draft),
    apply: (name, signed, by) => applyUpdate(parts, name, signed, { by, at: now() }),
    async approve(name, { generation, hash }, by) {
      const update = known(name);
      const present = presentHash(update, knowNodes(parts));
      if (update.head.value.generation !== generation || present !== hash)
        throw new Refused(
          409,
          "UPDATE_PLAN_CHANGED",
          `“${name}” is not what was approved: it is generation ${update.head.value.generation}, or means other nodes now`,
          `look again: kcore update cluster plan ${name}`,
        );
      return records.put([{ key: keys.update(name).approved, value: { generation, hash, by, at: now() } }]);
    },
    wish: (name, action, body, by) => wishFor(parts, known(name), action, { ...defined(body), by, at: now() }),
    takeOver: (name, { force }, by) =>
      takeOver({ records, index, controllerId, members }, name, { by, ...defined({ force }) }),
    async answerHook(name, { node, ...answer }) {
      const update = known(name);
      const id = parts.names.find(node);
      const row = update.rows.get(id);
      const hook = row && lookAtHooks(viewOf(update, knowNodes(parts), parts, parts.clock()), id, row).next;
      if (hook === undefined || row?.seq !== answer.seq)
        throw new Refused(409, "UPDATE_NOT_ASKED", `nothing is asked of the bastion for ${node} now`);
      return records.put([{ key: keys.update(name).hook(id, hook), value: answer }]);
    },
    async stop() {
      unwatch();
      exchange.stop();
      await fetcher.stop();
      await granting;
      await loop.stop();
      index.stop();
    },
  };
}

async function applyUpdate(
  parts: UpdatesParts,
  name: string,
  signed: SignedStatement,
  { by, at }: { readonly by: string; readonly at: string },
): Promise<AnswerOf<"applyUpdate">> {
  const { records, index, controllerId, endpointOf } = parts;
  const statement = readStatement(parts, name, signed);
  const hash = hashOf(statement);
  const update = index.read(name);
  const { blockers, nodes, ...planned } = planUpdate(parts, statement);
  const isUnchanged = update?.head.value.hash === hash;
  if (update && !isUnchanged && update.owner.owner !== controllerId)
    throw new Refused(
      409,
      "UPDATE_OWNED",
      `“${name}” is owned by the controller ${update.owner.owner}`,
      `kcore -s ${endpointOf(update.owner.owner) ?? "HOST"} update cluster apply; if it is gone: kcore update cluster takeover ${name}`,
    );
  // Two owners of one epoch, or two manifests of one generation, can be made on two sides of a cut alone.
  if (!isUnchanged && !parts.majority.isHeld())
    throw new Refused(
      409,
      "UPDATE_NO_MAJORITY",
      "this controller does not reach a majority of the controllers, and no update is taken without one",
      "kcore health tells which are missing; without them: kcore orchestrate update -f FILE",
    );
  const why = [...blockers, ...nodes.flatMap((node) => node.blockers.map((text) => `${node.hostname}: ${text}`))];
  if (!isUnchanged && why.length > 0)
    throw new Refused(409, "UPDATE_BLOCKED", why.slice(0, 10).join("; "), "kcore update cluster plan -f FILE");
  if (!isUnchanged) {
    await checkBundle(parts, statement);
    const generation = planned.generation;
    const of = keys.update(name);
    const createdAt = update?.head.value.createdAt ?? at;
    await records.write([
      { key: of.head, value: { generation, hash, signed, createdAt, updatedAt: at, by } },
      ...(update ? [] : [{ key: of.owner, value: { epoch: 1, owner: controllerId } }]),
    ]);
  }
  const present = index.read(name);
  const view = present && viewUpdate(parts, present);
  return {
    result: isUnchanged ? "unchanged" : update ? "updated" : "created",
    generation: view?.generation ?? planned.generation,
    hash: view?.hash ?? planned.hash,
    approvalStatus: view?.approvalStatus ?? "awaiting_approval",
  };
}

/** What is to be rolled out must be here: nodes and the other controllers get it from here. */
async function checkBundle({ bundles }: UpdatesParts, { bundle }: Statement): Promise<void> {
  if (!bundle || (await bundles.list()).some(({ sha256, whole }) => whole && sha256 === bundle.sha256)) return;
  throw new Refused(
    409,
    "UPDATE_BUNDLE_UNKNOWN",
    `the bundle ${bundle.sha256} is not on this controller`,
    "kcore update cluster apply brings it",
  );
}

/** Whether nodes may still ask for a bundle: of an update that has ended none does, and controllers' disks would fill with what was. */
export function isBundleNeeded(index: Pick<UpdateIndex, "all">, sha256: string): boolean {
  return [...index.all()].some((update) => update.statement.bundle?.sha256 === sha256 && !isSettled(update));
}

/** What this controller should have: another one may have written anything, so the bastion's word is checked. */
function wantedBundles({ index, rootPem, cluster }: UpdatesParts): readonly Bundle[] {
  return [...index.all()].flatMap((update) => {
    const { head, statement } = update;
    if (!statement.bundle || isSettled(update)) return [];
    try {
      verifyStatement(head.value.signed, { rootPem: rootPem(), cluster, now: Date.parse(statement.signedAt) });
      return [statement.bundle];
    } catch {
      return [];
    }
  });
}

function readStatement({ cluster, rootPem, clock }: UpdatesParts, name: string, signed: SignedStatement): Statement {
  const said = Statement.safeParse(verifyStatement(signed, { rootPem: rootPem(), cluster, now: clock() }));
  if (!said.success) {
    const [issue] = said.error.issues;
    throw new Refused(400, "API_INVALID", `the statement: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  if (said.data.name === name) return said.data;
  throw new Refused(400, "API_INVALID", `the statement is of “${said.data.name}”, not of “${name.slice(0, 80)}”`);
}

const wishable: Readonly<Record<WishAction, readonly string[]>> = {
  cancel: ["pending", "ready", "rolling_out"],
  rollback: ["pending", "ready", "rolling_out", "succeeded", "failed", "cancelled", "rolling_back"],
  promote: ["rolling_out"],
};

async function wishFor(
  { records }: UpdatesParts,
  { name, head, progress }: UpdateRecords,
  action: WishAction,
  wish: { readonly by: string; readonly at: string; readonly now?: boolean },
): Promise<AnswerOf<"cancelUpdate">> {
  const { generation } = head.value;
  const present = progress?.value;
  const phase = present?.generation === generation ? present.phase : "pending";
  if (!wishable[action].includes(phase))
    throw new Refused(
      409,
      "UPDATE_ENDED",
      `“${name}” is ${phase}: there is nothing to ${action === "rollback" ? "roll back" : action}`,
    );
  if (action === "promote" && (present?.canaries ?? 0) === 0)
    throw new Refused(409, "UPDATE_ENDED", `“${name}” has no canary to promote`, "strategy: { type: canary }");
  return records.put([{ key: keys.update(name).wish(action), value: { generation, ...wish } }]);
}
