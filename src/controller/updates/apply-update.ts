import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { Statement, type SignedStatement } from "#rollout/spec.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import type { BundleStore } from "./bundles.ts";
import { planUpdate, standsAs } from "./plan-update.ts";
import { hashOf, type UpdateRecords } from "./update-records.ts";
import { viewUpdate, type ViewParts } from "./update-views.ts";

export interface ApplyParts extends ViewParts {
  readonly verify: Verify;
  readonly bundles: Pick<BundleStore, "list">;
}

/** What a statement says, if it is the word of this cluster's bastion at that time, ms since 1970. @throws KcoreError UPDATE_UNSIGNED */
export type Verify = (signed: SignedStatement, now: number) => unknown;

/** So far the bastion's clock may be ahead of a controller's. */
const mostAheadMs = 300_000;

/**
 * Takes a manifest that the bastion signed: as a new update, which this controller owns from then on, or as the next generation of one that it
 * owns. @throws Refused UPDATE_UNSIGNED, UPDATE_OWNED, UPDATE_NO_MAJORITY, UPDATE_BLOCKED, UPDATE_BUNDLE_UNKNOWN, MATCH_FAILED
 */
export async function applyUpdate(
  parts: ApplyParts,
  name: string,
  { signed, again = false }: AcceptedBodyOf<"applyUpdate">,
  { by, at }: { readonly by: string; readonly at: string },
): Promise<AnswerOf<"applyUpdate">> {
  const { records, index, controllerId } = parts;
  const statement = readStatement(parts, name, signed);
  // Nothing is waited for between what is known of the update and what is made of it.
  const held = await parts.bundles.list();
  const hash = hashOf(statement);
  const update = index.read(name);
  const { blockers, nodes, ...planned } = planUpdate(parts, { ...statement, again });
  const isUnchanged = standsAs(update, hash, again);
  if (!isUnchanged) refuseChange(parts, update, "apply");
  const why = [...blockers, ...nodes.flatMap((node) => node.blockers.map((text) => `${node.hostname}: ${text}`))];
  if (!isUnchanged && why.length > 0)
    throw new Refused(409, "UPDATE_BLOCKED", why.slice(0, 10).join("; "), "kcore update cluster plan -f FILE");
  if (!isUnchanged) {
    checkBundle(held, statement);
    const generation = planned.generation;
    const of = keys.update(name);
    const createdAt = update?.head.value.createdAt ?? at;
    // A generation is one manifest: of two that come at once the later one is refused.
    await records.write(
      [
        { key: of.head, value: { generation, hash, signed, createdAt, updatedAt: at, by } },
        ...(update ? [] : [{ key: of.owner, value: { epoch: 1, owner: controllerId }, isFree: true }]),
      ],
      update?.head.dot ?? "absent",
    );
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

/** Refuses what is the owner's to change, and all without a majority. @throws Refused UPDATE_OWNED, UPDATE_NO_MAJORITY */
export function refuseChange(
  { controllerId, endpointOf, majority }: Pick<ViewParts, "controllerId" | "endpointOf" | "majority">,
  update: Pick<UpdateRecords, "name" | "owner"> | undefined,
  verb: string,
): void {
  if (update && update.owner.owner !== controllerId) {
    const { name, owner } = update;
    throw new Refused(
      409,
      "UPDATE_OWNED",
      `“${name}” is owned by the controller ${owner.owner}`,
      `kcore -s ${endpointOf(owner.owner) ?? "HOST"} update cluster ${verb}; if it is gone: kcore update cluster takeover ${name}`,
    );
  }
  // Two owners of one epoch, or two manifests of one generation, can be made on two sides of a cut alone.
  if (!majority.isHeld())
    throw new Refused(
      409,
      "UPDATE_NO_MAJORITY",
      "this controller does not reach a majority of the controllers, and no update is taken or removed without one",
      "kcore health tells which are missing; without them: kcore orchestrate update -f FILE",
    );
}

/** What is to be rolled out must be here: nodes and the other controllers get it from here. */
function checkBundle(held: Awaited<ReturnType<BundleStore["list"]>>, { bundle }: Statement): void {
  if (!bundle || held.some(({ sha256, whole }) => whole && sha256 === bundle.sha256)) return;
  throw new Refused(
    409,
    "UPDATE_BUNDLE_UNKNOWN",
    `the bundle ${bundle.sha256} is not on this controller`,
    "kcore update cluster apply brings it",
  );
}

function readStatement({ verify, clock }: ApplyParts, name: string, signed: SignedStatement): Statement {
  const said = Statement.safeParse(verify(signed, clock()));
  if (!said.success) {
    const [issue] = said.error.issues;
    throw new Refused(400, "API_INVALID", `the statement: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  if (said.data.name !== name)
    throw new Refused(400, "API_INVALID", `the statement is of “${said.data.name}”, not of “${name.slice(0, 80)}”`);
  refuseAhead(said.data, clock());
  return said.data;
}

/** A node takes nothing that was signed before what it took last: by a clock that runs ahead it would take no other update until then. */
function refuseAhead({ signedAt }: Statement, now: number): void {
  if (Date.parse(signedAt) - now <= mostAheadMs) return;
  throw new Refused(
    400,
    "UPDATE_UNSIGNED",
    `it was signed at ${signedAt}, and here it is ${new Date(now).toISOString()}`,
    "set the bastion's clock right, or this controller's, and apply it again",
  );
}
