import { firstCertificate } from "#pki/chain.ts";
import { endDays, expiryWarning, type WatchedCertificate, type ExpiryWarning } from "#pki/expectation.ts";
import type { OwnCertificate } from "./cluster/own-certificate.ts";
import type { SubCa } from "./cluster/own-sub-ca.ts";
import type { Replica } from "./replica/create-replica.ts";

/** Watches the certificates that this controller needs, and raises alarms before they end. */
export function watchCertificateEnds({
  own,
  subCa,
  replica,
  clock,
}: {
  readonly own: Pick<OwnCertificate, "credentials" | "problem">;
  readonly subCa: Pick<SubCa, "published">;
  readonly replica: Pick<Replica, "alarm">;
  readonly clock: () => number;
}) {
  /** Each certificate, by its name in metrics. */
  const all = (): ReadonlyMap<string, WatchedCertificate> => {
    const { notAfter, ca } = own.credentials();
    const problem = own.problem();
    const sub = subCa.published();
    const renewalHint =
      problem === undefined
        ? "kcore rotate certs"
        : `it was not renewed (${problem}); kcore rotate sub-ca lets it renew itself, kcore rotate certs renews it`;
    const ends = new Map<string, WatchedCertificate>();
    ends.set("controller", { what: "this controller's certificate", notAfter, way: renewalHint });
    if (sub)
      ends.set("sub-ca", {
        what: "this controller's sub-CA",
        notAfter: new Date(sub.notAfter),
        way: "kcore rotate sub-ca",
      });
    const rootEnds = firstCertificate(ca).validToDate;
    return ends.set("root", { what: "the cluster's root", notAfter: rootEnds, way: "its nodes need a new cluster" });
  };
  const endings = (): readonly (readonly [string, ExpiryWarning | undefined])[] =>
    [...all()].map(([name, certified]) => [name, expiryWarning(certified, clock())]);
  return {
    all,
    /** The reason why this controller counts as failed: a certificate ends within two days. */
    failure: (): string | undefined => endings().find(([, ending]) => ending?.isFailure)?.[1]?.message,
    /** Raises an alarm when a certificate has 30, 14, 7 or 2 days left, and clears the alarm of the step before. */
    raiseAlarms: (): void => {
      for (const [name, ending] of endings())
        for (const days of endDays)
          replica.alarm(ending?.days === days, "CERTIFICATE_ENDS", `${name}, ${days} days`, ending?.message ?? "");
    },
  };
}
