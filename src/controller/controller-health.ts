import type { AnswerOf } from "#api/methods.ts";
import type { ReplicationView } from "#api/controller-schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { ControllerCluster } from "./controller-cluster.ts";
import type { ControllerState } from "./controller-state.ts";
import { inWords } from "./replica/clock-alarms.ts";
import type { ReplicaStatus } from "./replica/replica.ts";

export type HealthOptions = Pick<
  ControllerCluster,
  "records" | "certificates" | "controllers" | "nodes" | "certificateEnds" | "emptiness"
> &
  Pick<ControllerState, "self"> & {
    /** The reason why nothing can be written to the disk at the moment. */
    readonly storeProblem: () => string | undefined;
  };

export type Health = ReturnType<typeof watchHealth>;

/** The controller's health, for `/readyz` and for `get replication-status`. */
export function watchHealth({
  records,
  certificates,
  controllers,
  nodes,
  certificateEnds,
  self,
  emptiness,
  storeProblem,
}: HealthOptions) {
  const warningsOf = (status: ReplicaStatus): string[] => {
    const settings = controllers.settings();
    const manual = settings.filter(({ requireManualApproval }) => requireManualApproval);
    const disagreement =
      manual.length > 0 && manual.length < settings.length
        ? [
            `controllers disagree on requireManualApproval; the stricter wins, so new nodes wait: true on ${manual
              .map(({ controllerId }) => controllerId)
              .join(", ")} only`,
          ]
        : [];
    const open = status.ready && !certificates.hasOperators();
    return [
      ...disagreement,
      ...(open
        ? ["no operator's key is registered: every operator's certificate of this cluster's CA is accepted"]
        : []),
      ...status.alarms.map(({ code, about, message }) => `${message} (${code} ${about})`),
    ];
  };
  /** The reason why this controller is not ready. */
  const blockOf = (status: ReplicaStatus): string | undefined => {
    if (status.catchingUp && status.ready) return "it has just started, and asks the others for what it missed";
    if (status.catchingUp)
      return "it was put back or mended, and has not caught up with another controller yet; if none is left: kcore controller repair --alone, on its machine";
    if (!status.ready) return emptiness() ?? "it is joining: it has not caught up with its cluster yet";
    const disk = storeProblem();
    if (disk !== undefined) return `its state cannot be written: ${disk}`;
    if (!controllers.isMember(self.controllerId)) return "it is no member of its cluster any more";
    const ending = certificateEnds.failure();
    if (ending !== undefined) return ending;
    const turnedOut = records.replica.turnedOut();
    if (turnedOut !== undefined) return turnedOut;
    if (records.replica.isUnheard()) return unheard;
    if (status.readOnly === undefined) return undefined;
    const { readOnlyFor } = status;
    return `it takes no writes${readOnlyFor === undefined ? "" : ` for ${inWords(readOnlyFor)}`} (${status.readOnly})`;
  };
  return {
    ready(): AnswerOf<"ready"> {
      const status = records.replica.status();
      const counts = status.ready ? nodes.countByStatus() : new Map<string, number>();
      const reason = blockOf(status);
      return {
        ...self,
        ready: reason === undefined,
        ...omitUndefined({ reason }),
        nodes: { total: [...counts.values()].reduce((sum, count) => sum + count, 0), ready: counts.get("ready") ?? 0 },
        peers: controllers.peers().map(({ controllerId, address, inStep, reason: why }) => ({
          controllerId,
          address,
          inStep,
          ...omitUndefined({ reason: why }),
        })),
        warnings: warningsOf(status),
        requireManualApproval: controllers.requiresManualApproval(),
      };
    },
    replication(): ReplicationView {
      const status = records.replica.status();
      const peers = controllers.peers();
      const block = blockOf(status);
      const problems = [
        ...(block === undefined ? [] : [`this controller: ${block}`]),
        ...peers.flatMap(({ controllerId, reason }) => (reason === undefined ? [] : [`${controllerId}: ${reason}`])),
        // A certificate that ends in weeks is no problem yet; `blockOf` reports one that ends within two days.
        ...status.alarms
          .filter(({ code }) => code !== "CERTIFICATE_ENDS")
          .map(({ code, message }) => `${message} (${code})`),
      ];
      return {
        controllerId: self.controllerId,
        healthy: problems.length === 0,
        problems,
        vv: { ...status.vv },
        digest: status.digest,
        registers: status.registers,
        tombstones: status.tombstones,
        quarantined: status.quarantined.length,
        conflicts: records.replica.conflicts().length,
        ...omitUndefined({
          readOnly: status.readOnly ?? (records.replica.isUnheard() ? "UNHEARD" : undefined),
          readOnlyForMs: status.readOnlyFor,
        }),
        alarms: status.alarms.map(({ code, about, message }) => ({ code, message: `${message} (${about})` })),
        settings: controllers.settings(),
        peers,
      };
    },
  };
}

const unheard =
  "it takes no writes: no other controller has let it in since it started; if none is left: kcore controller repair --alone, on its machine";
