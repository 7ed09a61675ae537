import { graceEnd } from "#api/late-renewal.ts";
import type { CertificateView } from "#api/schemas.ts";
import { lastsUntil, readNotAfter } from "#crdt/merge-kind.ts";
import { Refused } from "./refused.ts";
import type { Records, RegisterChange } from "./records.ts";
import { keys, type CertificateRecordValue } from "./registers.ts";

interface RevocationFields {
  readonly at: string;
  readonly by: string;
  readonly reason: string;
}

/** The issued certificates, and the revoked keys. */
export type Certificates = ReturnType<typeof watchCertificates>;

interface Holder {
  readonly role: CertificateRecordValue["role"];
  readonly id: string;
}

/** More than the clocks of two controllers can differ, ms. */
const clockMarginMs = 86_400_000;
/** The most certificates to forget in a transaction, which holds 500 changes (replica/writer.ts); each certificate takes two. */
const forgottenAtOnce = 200;

export function watchCertificates(records: Records, clock: () => number) {
  /** Serials by key (SPKI), and by a holder's `role id`; some of their records may be deleted. */
  const serialsOf = new Map<string, Set<string>>();
  let isAnyOperatorRecorded = false;
  const index = (key: string): void => {
    const record = records.value("certificate", key);
    if (!record) return;
    // Never reset: the last record of an operator's key is not deleted.
    isAnyOperatorRecorded ||= record.role === "operator";
    for (const name of [record.spki, `${record.role} ${record.id}`])
      add(serialsOf, name, key.slice(keys.certificate("").length));
  };
  for (const { key } of records.list("certificate", keys.certificate(""))) index(key);
  const stop = records.replica.watch((changed) => {
    for (const key of changed) if (key.startsWith(keys.certificate(""))) index(key);
  });
  const recordsOf = (spki: string): readonly CertificateRecordValue[] =>
    [...(serialsOf.get(spki) ?? [])].flatMap((serial) => records.value("certificate", keys.certificate(serial)) ?? []);
  /** Whether a record says that this key belongs to this member. */
  const isRecorded = (spki: string, role: CertificateRecordValue["role"], id: string): boolean =>
    recordsOf(spki).some((record) => record.role === role && record.id === id);
  const recordsOfHolder = ({ role, id }: Holder) =>
    [...(serialsOf.get(`${role} ${id}`) ?? [])]
      .flatMap((serial) => records.get("certificate", keys.certificate(serial)) ?? [])
      .filter(({ value }) => value.role === role && value.id === id)
      .toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const recordedKeys = (role: CertificateRecordValue["role"], id: string): readonly string[] =>
    recordsOfHolder({ role, id }).map(({ value }) => value.spki);
  // `stands`, since a revocation that this version cannot read counts, too.
  const isRevoked = (spki: string): boolean => records.replica.stands(keys.revoked(spki));

  /** The serial of a node's or a sub-CA's certificate that is in use; undefined for other roles. */
  const currentSerialOf = ({ role, id }: CertificateRecordValue): string | undefined => {
    if (role === "node") return records.value("reg", keys.node(id).reg)?.serial;
    return role === "sub-ca" ? records.value("subCa", keys.controller(id).subCa)?.serial : undefined;
  };

  /** Whether any operator's key is registered; until then a certificate of the CA suffices. */
  const hasOperators = (): boolean => {
    for (const _ of records.replica.entries("operator/")) return true;
    return isAnyOperatorRecorded;
  };
  /**
   * The time from which a key's revocation is not needed, ms since 1970; Infinity unless all records of the key are of nodes. From then
   * on the records are deleted, and a node's key without records is not accepted.
   */
  const endOfKey = (spki: string): number => {
    const known = recordsOf(spki);
    const end = Math.max(...known.map(renewableUntil));
    const belongsToNodes = known.every(({ role }) => role === "node");
    return belongsToNodes && end > 0 ? end : Infinity;
  };
  /** Whether a key stays revoked until `end`: a stolen controller could write a revocation that ends sooner, and delete it then. */
  const isRevokedUntil = (spki: string, end: number): boolean => {
    const standing = records.replica.get(keys.revoked(spki));
    return isRevoked(spki) && (standing === undefined || lastsUntil(standing) >= end);
  };
  const changesToRevokeKeys = (spkis: Iterable<string>, revocation: RevocationFields): RegisterChange[] =>
    [...new Set(spkis)].flatMap((spki) => {
      const end = endOfKey(spki);
      if (isRevokedUntil(spki, end)) return [];
      const until = end === Infinity ? {} : { notAfter: new Date(end).toISOString() };
      return [{ key: keys.revoked(spki), value: { ...revocation, ...until } }];
    });
  const hasEnded = (record: CertificateRecordValue): boolean => renewableUntil(record) < clock() - clockMarginMs;
  const haveEnded = (spki: string): boolean => recordsOf(spki).every(hasEnded);
  /** Whether a record may be deleted. The last records of an operator's key stay, and those of a key whose revocation stays. */
  const isForgettable = (record: CertificateRecordValue): boolean =>
    hasEnded(record) &&
    !(record.role === "operator" && haveEnded(record.spki)) &&
    !isRevokedUntil(record.spki, clock() - clockMarginMs);

  return {
    isRecorded,
    isRevoked,
    hasOperators,
    /**
     * Whether a node may use this key: it registered with the key, or an operator or a renewal recorded the key for it. A valid certificate
     * alone suffices only before the first registration in a cluster without operators: a stolen sub-CA could invent nodes (S-10).
     */
    isOfNode: (id: string, spki: string, registered: string | undefined): boolean =>
      registered === spki || isRecorded(spki, "node", id) || (registered === undefined && !hasOperators()),
    isOperator: (name: string, spki: string): boolean =>
      records.replica.get(keys.operator(name, spki)) !== undefined || isRecorded(spki, "operator", name),
    /** Whether all records of a key are of a node or a sub-CA: agents answer no such caller, revoked or not. */
    isNoCaller(spki: string): boolean {
      const found = recordsOf(spki);
      return found.length > 0 && found.every(({ role }) => role === "node" || role === "sub-ca");
    },
    changeToRecord: (serial: string, record: CertificateRecordValue): RegisterChange => {
      const key = keys.certificate(serial);
      const present = records.value("certificate", key);
      // A repeated record keeps the first one's `issued` and `by`: the register is grow-only.
      const isSame = present?.spki === record.spki && present.role === record.role && present.id === record.id;
      return { key, value: isSame ? present : record };
    },
    /** Changes that delete records of certificates that cannot be renewed any more, with the revocations of their keys. */
    changesToForget(): RegisterChange[] {
      const ended = [...records.list("certificate", keys.certificate(""))].filter(({ value }) => isForgettable(value));
      const due = ended.slice(0, forgottenAtOnce);
      // Another controller may have recorded a later certificate of the key, before it knew of the revocation.
      const over = new Set(due.map(({ value }) => value.spki).filter((spki) => isRevoked(spki) && haveEnded(spki)));
      return [...due.map(({ key }) => key), ...[...over].map(keys.revoked)].map((key) => ({ key, value: undefined }));
    },
    /** Revokes a key for ever, by its fingerprint or a certificate's serial. @throws Refused CERTIFICATE_UNKNOWN */
    async revoke({
      serial,
      spki: given,
      reason,
      by,
    }: {
      readonly serial?: string | undefined;
      readonly spki?: string | undefined;
      readonly reason: string;
      readonly by: string;
    }): Promise<{ readonly spki: string; readonly serials: string[]; readonly result: "created" | "unchanged" }> {
      const spki =
        given ?? (serial === undefined ? undefined : records.value("certificate", keys.certificate(serial))?.spki);
      if (spki === undefined) {
        throw new Refused(404, "CERTIFICATE_UNKNOWN", `no certificate ${serial} is recorded`, "kcore get certificates");
      }
      const serials = [...(serialsOf.get(spki) ?? [])];
      if (isRevokedUntil(spki, Infinity)) return { spki, serials, result: "unchanged" };
      await records.write([{ key: keys.revoked(spki), value: { at: new Date(clock()).toISOString(), by, reason } }]);
      return { spki, serials, result: "created" };
    },
    /** Changes that revoke all keys of a node or controller, and the keys of a controller's sub-CAs. */
    changesToRevoke(
      role: "controller" | "node",
      id: string,
      more: readonly (string | undefined)[],
      revocation: RevocationFields,
    ): RegisterChange[] {
      // A removed controller must not be able to sign valid certificates.
      const roles = role === "controller" ? (["controller", "sub-ca"] as const) : ([role] as const);
      const recorded = roles.flatMap((one) => [...recordedKeys(one, id)]);
      return changesToRevokeKeys([...recorded, ...more.filter((spki) => spki !== undefined)], revocation);
    },
    /** Changes that revoke every key of a node other than `spki`, which replaces them. */
    changesToSupersede(id: string, spki: string, by: string): RegisterChange[] {
      const registered = records.value("reg", keys.node(id).reg)?.key;
      const former = [...recordedKeys("node", id), ...(registered === undefined ? [] : [registered])];
      const revocation = { at: new Date(clock()).toISOString(), by, reason: `replaced by the key ${spki}` };
      return changesToRevokeKeys(
        former.filter((key) => key !== spki),
        revocation,
      );
    },
    /** All certificates, or those of one holder. */
    *list(holder?: Holder): Iterable<CertificateView> {
      for (const { key, value } of holder
        ? recordsOfHolder(holder)
        : records.list("certificate", keys.certificate(""))) {
        const revoked = records.value("revoked", keys.revoked(value.spki));
        const serial = key.slice(keys.certificate("").length);
        yield {
          serial,
          spki: value.spki,
          role: value.role,
          id: value.id,
          issuer: value.issuer,
          notAfter: value.notAfter,
          issued: value.issued,
          status: isRevoked(value.spki) ? "revoked" : Date.parse(value.notAfter) <= clock() ? "expired" : "active",
          current: currentSerialOf(value) === serial,
          ...(revoked ? { revoked: { at: revoked.at, reason: revoked.reason, by: revoked.by } } : {}),
        };
      }
    },
    stop,
  };
}

/**
 * The time from which the key cannot renew the certificate, ms since 1970; NaN if the record has no valid end, and so can
 * never be deleted.
 */
function renewableUntil({ notAfter }: CertificateRecordValue): number {
  return graceEnd(new Date(readNotAfter(notAfter)));
}

function add(sets: Map<string, Set<string>>, key: string, value: string): void {
  const present = sets.get(key);
  if (present) present.add(value);
  else sets.set(key, new Set([value]));
}
