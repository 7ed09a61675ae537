import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import type { Owner } from "#rollout/records.ts";
import { UpdateStatement } from "#rollout/spec.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import type { BundleStore } from "./bundles.ts";
import { makePlan, isApplied } from "./plan-update.ts";
import { inputOf, presentHash } from "./known-input.ts";
import { readOwnership, readSigned, type SignedParts } from "./signed-statements.ts";
import { manifestHashOf, type UpdateRecords } from "./update-records.ts";
import { approvalStatusOf, type ViewParts } from "./update-views.ts";

export interface ApplyParts extends ViewParts, SignedParts {
  readonly bundles: Pick<BundleStore, "list">;
}

/**
 * Applies a manifest that the bastion signed. A new update gets the owner that the bastion signed, so the same request at two controllers
 * makes one owner. A present update gets its next generation, if this controller owns it.
 * @throws Refused API_INVALID, UPDATE_UNSIGNED, UPDATE_OWNED, UPDATE_BLOCKED, UPDATE_BUNDLE_UNKNOWN, MATCH_FAILED; KcoreError UPDATE_UNSIGNED
 */
export async function applyUpdate(
  parts: ApplyParts,
  name: string,
  { signed, ownership, again = false }: AcceptedBodyOf<"applyUpdate">,
  { by, at }: { readonly by: string; readonly at: string },
): Promise<AnswerOf<"applyUpdate">> {
  const { records, index } = parts;
  const statement = readSigned(parts, { name, signed, schema: UpdateStatement });
  const owner = readOwnership(parts, name, ownership);
  // Awaited here, so that no await lies between reading the update and writing it.
  const stored = await parts.bundles.list();
  const hash = manifestHashOf(statement);
  const update = index.read(name);
  if (update && isApplied(update, hash, again)) {
    const input = inputOf(parts, update);
    const approvalStatus = approvalStatusOf(input);
    return {
      result: "unchanged",
      generation: input.generation,
      hash: presentHash(update, input.nodeIds),
      approvalStatus,
    };
  }
  const { blockers, nodes, generation, ...planned } = makePlan(parts, { ...statement, again });
  refuseUnlessOwner(parts, update, "apply");
  const why = [...blockers, ...nodes.flatMap((node) => node.blockers.map((text) => `${node.hostname}: ${text}`))];
  if (why.length > 0)
    throw new Refused(409, "UPDATE_BLOCKED", why.slice(0, 10).join("; "), "kcore update cluster plan -f FILE");
  checkBundle(stored, statement);
  const of = keys.update(name);
  const createdAt = update?.head.value.createdAt ?? at;
  // The write names the head's version as precondition, so the later of two concurrent manifests is refused.
  await records.write(
    [
      { key: of.head, value: { generation, hash, signed, createdAt, updatedAt: at, by } },
      // The owner's signature ends with its sub-CA, so each generation stores a new one of the same owner.
      ...(!update || isSameOwner(owner, update.owner) ? [{ key: of.owner, value: owner, isFree: true }] : []),
    ],
    update?.head.dot ?? "absent",
  );
  return {
    result: update ? "updated" : "created",
    generation,
    hash: planned.hash,
    // An approval names one generation, so a new generation has no approval.
    approvalStatus: planned.approval === "manual" ? "awaiting_approval" : "approved",
  };
}

function isSameOwner(one: Owner, other: Owner): boolean {
  return one.epoch === other.epoch && one.owner === other.owner;
}

/** Refuses a change that only the owner may make. @throws Refused UPDATE_OWNED */
export function refuseUnlessOwner(
  { controllerId, endpointOf }: Pick<ViewParts, "controllerId" | "endpointOf">,
  update: Pick<UpdateRecords, "name" | "owner"> | undefined,
  verb: string,
): void {
  if (update && update.owner.owner !== controllerId) {
    const { name, owner } = update;
    throw new Refused(
      409,
      "UPDATE_OWNED",
      `“${name}” is owned by the controller ${owner.owner}`,
      `kcore -s ${endpointOf(owner.owner) ?? "HOST"} update cluster ${verb}; if the owner is gone: kcore update cluster takeover ${name}`,
    );
  }
}

/** Refuses a bundle that this controller does not have: nodes and the other controllers fetch it here. @throws Refused UPDATE_BUNDLE_UNKNOWN */
function checkBundle(stored: Awaited<ReturnType<BundleStore["list"]>>, { bundle }: UpdateStatement): void {
  if (!bundle || stored.some(({ sha256, whole }) => whole && sha256 === bundle.sha256)) return;
  throw new Refused(
    409,
    "UPDATE_BUNDLE_UNKNOWN",
    `the bundle ${bundle.sha256} is not on this controller`,
    "kcore update cluster apply brings it",
  );
}
