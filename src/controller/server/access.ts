import { methods, type Method, type MethodName } from "#api/methods.ts";
import type { Certificates } from "../cluster/certificates.ts";
import { approvalOf } from "../cluster/rejects.ts";
import { refusalOfRemoved } from "../cluster/nodes.ts";
import type { Records } from "../cluster/records.ts";
import type { Rejects } from "../cluster/rejects.ts";
import { keys } from "../cluster/registers.ts";
import { Refused, revokedKey } from "../cluster/refused.ts";
import type { KnownCaller } from "./caller.ts";

type CheckedCaller = Pick<KnownCaller, "identity" | "id" | "key" | "isOfRoot">;

/** Refuses every role that the methods table does not name, and a node that asks about another node (S-12, S-16). @throws Refused 403 */
export function authorize(name: MethodName, caller: Pick<CheckedCaller, "identity" | "id">, id: string): void {
  const method: Method = methods[name];
  if (!method.roles.includes(caller.identity.role)) deny(caller, `ask ${method.verb} ${method.path}`);
  const isAboutOther = method.ownNodeOnly === true && id !== "" && id !== caller.id;
  if (caller.identity.role === "node" && isAboutOther) deny(caller, `ask about node ${id}`);
}

export function deny({ identity }: Pick<CheckedCaller, "identity">, what: string): never {
  throw new Refused(403, "API_DENIED", `${identity.role} ${identity.id} may not ${what.slice(0, 200)}`);
}

export interface AccessOptions {
  readonly records: Records;
  readonly certificates: Certificates;
  readonly rejects: Rejects;
  /** Whether the records are complete; until then only methods with `whileJoining` are answered. */
  readonly isReady: () => boolean;
  /** Whether this controller knows the cluster's members, ready or not. */
  readonly knowsMembers: () => boolean;
  /** The reason why this controller will not become ready by itself. */
  readonly emptiness: () => string | undefined;
}

export type AccessCheck = ReturnType<typeof checkAccess>;

/** The checks of callers against the present records: registered, not revoked, approved (S-10, S-11). */
export function checkAccess({ records, certificates, rejects, isReady, knowsMembers, emptiness }: AccessOptions) {
  const approval = (id: string): string =>
    approvalOf({ approval: records.get("approval", keys.node(id).approval), rejects: rejects.of(id) });
  const ofOperator = ({ id, key, isOfRoot }: CheckedCaller): Refused | undefined => {
    // A certificate of the root itself needs no record, so that the bastion can undo every write and revocation of a
    // controller (ADR 0517).
    if (isOfRoot === true) return undefined;
    // A cluster without a registered operator accepts every operator's certificate of its CA; /readyz has the warning.
    if (certificates.isOperator(id, key) || !certificates.hasOperators()) return undefined;
    return unregistered(`operator ${id}`, "record it from a machine whose operator's key is: kcore rotate certs");
  };
  const ofController = ({ id, key }: CheckedCaller): Refused | undefined => {
    const auth = records.value("auth", keys.controller(id).auth);
    if (!auth) return new Refused(403, "CONTROLLER_UNKNOWN", `controller ${id} is not registered`);
    return auth.spki === key || auth.next === key ? undefined : unregistered(`controller ${id}`);
  };
  const ofNode = ({ id, key }: CheckedCaller): Refused | undefined => {
    if (records.replica.stands(keys.node(id).removed)) return refusalOfRemoved(id);
    const registered = records.value("reg", keys.node(id).reg)?.key;
    if (isReady() && !certificates.isOfNode(id, key, registered))
      return unregistered(`node ${id}`, "deploy the node: the bastion records what it issues");
    return approval(id) === "rejected" ? rejected(id) : undefined;
  };
  /** The reason why a connection of this caller must be cut; undefined if it may stay. */
  const refusalOf = (caller: CheckedCaller): Refused | undefined => {
    if (certificates.isRevoked(caller.key)) {
      // A controller has its node's id.
      const isRemoved = caller.identity.role !== "operator" && records.replica.stands(keys.node(caller.id).removed);
      return revokedKey(403, caller.identity, isRemoved);
    }
    switch (caller.identity.role) {
      case "operator":
        return isReady() ? ofOperator(caller) : undefined;
      case "controller":
        return knowsMembers() ? ofController(caller) : undefined;
      case "node":
        return ofNode(caller);
    }
  };
  return {
    refusalOf,
    /** Checks that the caller may call the method for the node or object `id` now. @throws Refused */
    check: (name: MethodName, caller: CheckedCaller, id: string): void => {
      authorize(name, caller, id);
      const method: Method = methods[name];
      if (!isReady() && method.whileJoining !== true) {
        throw new Refused(
          503,
          "CONTROLLER_JOINING",
          records.replica.turnedOut() ?? "this controller has not caught up yet, or is no member any more",
          "ask another: kcore -s HOST",
        );
      }
      const refusal = refusalOf(caller);
      if (refusal && !(refusal.code === "NODE_REJECTED" && method.whileRejected === true)) throw refusal;
      // A joining controller knows no members, so it lets no peer in; it dials its sponsors.
      if (name === "replicate" && !knowsMembers()) {
        const why = emptiness();
        throw why === undefined
          ? new Refused(503, "CONTROLLER_JOINING", "this controller is joining")
          : new Refused(503, "CONTROLLER_EMPTY", why);
      }
      if (method.approvedOnly === true && caller.identity.role === "node") mustBeApproved(caller);
    },
  };

  function mustBeApproved({ id, key }: CheckedCaller): void {
    if (records.value("reg", keys.node(id).reg)?.key !== key) throw unregistered(`node ${id}`);
    if (approval(id) === "approved") return;
    throw new Refused(403, "NODE_PENDING", `node ${id} waits for approval`, `kcore node approve ${id}`);
  }
}

function rejected(id: string): Refused {
  return new Refused(403, "NODE_REJECTED", `node ${id} was rejected`, "kcore node approve lets it in again");
}

function unregistered(who: string, hint?: string): Refused {
  return new Refused(403, "KEY_UNREGISTERED", `${who} shows a key that the cluster was never told of`, hint);
}
