import type { ControllerRegistration, ControllerView, PeerView } from "#api/controller-schemas.ts";
import type { WriteResult } from "#api/schemas.ts";
import type { z } from "zod";
import { omitUndefined } from "#base/omit-undefined.ts";
import { certificatesOf } from "#pki/chain.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { Refused, revokedKey } from "./refused.ts";
import type { PeerStatus } from "../replica/replica.ts";
import type { Certificates } from "./certificates.ts";
import type { Records, RegisterChange } from "./records.ts";
import { keys } from "./registers.ts";

/** The controllers of the cluster. Operators decide on membership; each controller writes the other registers about itself. */
export type ClusterControllers = ReturnType<typeof manageControllers>;

export interface ClusterControllersOptions {
  readonly records: Records;
  readonly certificates: Certificates;
  readonly controllerId: string;
  readonly dc: string;
  readonly version: string;
  readonly requireManualApproval: boolean;
  /** The address under which others reach this controller; empty if it is unknown. */
  readonly address: () => string;
  readonly own: () => { readonly cert: string; readonly notAfter: Date };
  readonly subCa: () =>
    { readonly certificate: string; readonly serial: string; readonly notAfter: string } | undefined;
  readonly clock: () => number;
  /** The time of the last message from a peer, ms since 1970; 0: never. */
  readonly lastContact: (id: string) => number;
}

export function manageControllers(options: ClusterControllersOptions) {
  const { records, certificates, controllerId, dc, version, requireManualApproval, clock, lastContact } = options;
  /** The ids of the registered controllers. */
  const members = (): readonly string[] =>
    Array.from(records.list("auth", "controller/"), ({ key }) => key.split("/")[1] ?? "");
  const authOf = (id: string) => records.get("auth", keys.controller(id).auth);
  const addressOf = (id: string): string | undefined =>
    records.value("addr", keys.controller(id).addr)?.address ?? authOf(id)?.value.address;
  /** Each controller's setting of manual approval: this controller's own, and the published ones of the others. */
  const settings = (): { readonly controllerId: string; readonly requireManualApproval: boolean }[] => {
    const others = members()
      .filter((id) => id !== controllerId)
      .flatMap((id) => {
        const value = records.value("settings", keys.controller(id).settings);
        return value ? [{ controllerId: id, requireManualApproval: value.requireManualApproval }] : [];
      });
    return [{ controllerId, requireManualApproval }, ...others];
  };
  const peerStatus = (): readonly PeerStatus[] => records.replica.status().peers;
  /** The record of this controller's certificate if its own sub-CA renewed it (ADR 0516); the bastion records the certificates that it issues. */
  const changesToRecordOwn = (chain: string): readonly RegisterChange[] => {
    const entry = inventoryEntry(chain);
    // A controller's sub-CA names the controller in its subjectAltName; the bastion's sub-CA has none.
    if (entry === undefined || certificatesOf(chain)[1]?.subjectAltName === undefined) return [];
    const { serial, ...record } = entry;
    const issued = new Date(clock()).toISOString();
    return [certificates.changeToRecord(serial, { ...record, issued, by: `controller ${controllerId}` })];
  };
  const contactOf = (id: string): string => {
    const at = lastContact(id);
    return at > 0 ? new Date(at).toISOString() : "";
  };

  return {
    /** Whether a controller is a member with this key (SHA-256), present or next. */
    isKeyOf(id: string, key: string): boolean {
      const auth = authOf(id)?.value;
      return auth !== undefined && (auth.spki === key || auth.next === key);
    },
    // A lookup without iteration: called with every request.
    isMember: (id: string): boolean => records.value("auth", keys.controller(id).auth) !== undefined,
    ids: members,
    addressOf,
    settings,
    /** Whether any controller makes nodes wait for approval; the stricter setting wins. */
    requiresManualApproval: (): boolean => settings().some((setting) => setting.requireManualApproval),
    /** Endpoints of all controllers, this one first. */
    endpoints: (): string[] => {
      const others = members().filter((id) => id !== controllerId);
      const all = [options.address(), ...others.map((id) => addressOf(id) ?? "")];
      return [...new Set(all.filter((address) => address !== ""))];
    },
    list: (): z.input<typeof ControllerView>[] => {
      const peers = new Map(peerStatus().map((peer) => [peer.id, peer]));
      return members().map((id) => {
        const of = keys.controller(id);
        const auth = authOf(id);
        const announced = records.value("version", of.version);
        const subCa = records.value("subCa", of.subCa);
        const setting = records.value("settings", of.settings);
        return {
          controllerId: id,
          dc: records.value("addr", of.addr)?.dc ?? auth?.value.dc ?? "",
          address: addressOf(id) ?? "",
          version: announced?.version ?? "",
          state: id === controllerId ? ("self" as const) : stateOf(peers.get(id)),
          registered: auth?.value.at ?? auth?.at ?? "",
          lastContact: id === controllerId ? new Date(clock()).toISOString() : contactOf(id),
          key: auth?.value.spki ?? "",
          ...(auth?.value.next === undefined ? {} : { nextKey: auth.value.next }),
          ...(setting ? { requireManualApproval: setting.requireManualApproval } : {}),
          ...(announced?.certificateExpires === undefined ? {} : { certificateExpires: announced.certificateExpires }),
          ...(subCa ? { subCa: { serial: subCa.serial, notAfter: subCa.notAfter } } : {}),
        };
      });
    },
    peers: (): PeerView[] =>
      peerStatus().map((peer) => {
        const reason = whyOutOfStep(peer);
        return {
          controllerId: peer.id,
          dc: records.value("addr", keys.controller(peer.id).addr)?.dc ?? authOf(peer.id)?.value.dc ?? "",
          address: addressOf(peer.id) ?? "",
          state: stateOf(peer),
          inStep: reason === undefined,
          ...omitUndefined({ reason }),
          behind: peer.behind,
          ahead: peer.ahead,
          ...omitUndefined({ rttMs: peer.rttMs, clockOffsetMs: peer.offsetMs }),
          phi: peer.phi,
          lastContact: contactOf(peer.id),
        };
      }),
    /** Registers a controller before it starts (docs/replication.md, Coming and going). @throws Refused KEY_REVOKED */
    async register(
      id: string,
      { spki, next, address, dc: where }: z.output<typeof ControllerRegistration>,
    ): Promise<WriteResult> {
      if (certificates.isRevoked(spki) || (next !== undefined && certificates.isRevoked(next))) {
        throw revokedKey(409, { role: "controller", id }, records.replica.stands(keys.node(id).removed));
      }
      const key = keys.controller(id).auth;
      const at = authOf(id)?.value.at ?? new Date(clock()).toISOString();
      const value = { spki, dc: where, at, ...omitUndefined({ next }) };
      return records.put([{ key, value: { ...value, ...omitUndefined({ address }) } }]);
    },
    /** Deletes a controller's registers and revokes its keys. @throws Refused CONTROLLER_UNKNOWN */
    async remove(id: string, by: string, reason: string): Promise<WriteResult> {
      const auth = authOf(id);
      if (!auth)
        throw new Refused(404, "CONTROLLER_UNKNOWN", `no controller ${id} is registered`, "kcore get controllers");
      const removal = { at: new Date(clock()).toISOString(), by, reason };
      const former = [...records.replica.entries(`controller/${id}/`)].map(([key]): RegisterChange => ({
        key,
        value: undefined,
      }));
      const revoked = certificates.changesToRevoke("controller", id, [auth.value.spki, auth.value.next], removal);
      return { result: "deleted", dot: await records.write([...former, ...revoked]) };
    },
    /** Writes this controller's own registers that have changed. */
    async publish(): Promise<void> {
      const of = keys.controller(controllerId);
      const address = options.address();
      const subCa = options.subCa();
      const { cert, notAfter } = options.own();
      await records.put([
        ...changesToRecordOwn(cert),
        ...(address === "" ? [] : [{ key: of.addr, value: { address, dc } }]),
        { key: of.version, value: { version, certificateExpires: notAfter.toISOString() } },
        { key: of.settings, value: { requireManualApproval } },
        ...(subCa ? [{ key: of.subCa, value: subCa }] : []),
      ]);
    },
  };
}

function stateOf(peer: PeerStatus | undefined): PeerView["state"] {
  if (!peer) return "connecting";
  if (peer.state === "refused") return "refused";
  if (peer.state !== "connected") return peer.state === "connecting" ? "connecting" : "down";
  return peer.health === "up" ? "connected" : peer.health;
}

/** The reason why a peer is not in step, in words; undefined if it is. */
function whyOutOfStep({ state, health, phi, behind, ahead, refusal, ready }: PeerStatus): string | undefined {
  if (refusal) return `it refuses us: ${refusal.message} (${refusal.code})`;
  if (state !== "connected") return "it is not connected";
  if (health === "down") return `it has not been heard for long (φ ${phi.toFixed(1)})`;
  if (ready === false) return "it is still joining";
  // Not zero: a few transactions are always in flight.
  if (behind > 1000 || ahead > 1000) return `it is ${Math.max(behind, ahead)} transactions apart`;
  return undefined;
}
