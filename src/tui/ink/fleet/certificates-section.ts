import { certificateColumns, type CertificateRow } from "../../columns/certificate-columns.ts";
import { concernOfExpiry } from "../../columns/concern.ts";
import { certificateWord } from "../../fleet-words.ts";
import { expiryFact } from "./cells.ts";
import type { Section } from "./section.ts";
import type { FleetCertificate, FleetSnapshot } from "./snapshot.ts";

/** The present certificate of each holder; replaced and revoked certificates are left out. */
function presentCertificates({ certificates, nodes, controllers }: FleetSnapshot): readonly CertificateRow[] {
  const latest = new Map<string, FleetCertificate>();
  for (const certificate of certificates) {
    if (certificate.status === "revoked") continue;
    const key = `${certificate.role} ${certificate.id}`;
    const known = latest.get(key);
    if (!known || takesPrecedence(certificate, known)) latest.set(key, certificate);
  }
  const names = new Map([
    ...controllers.map(({ controllerId, address }) => [controllerId, address || controllerId] as const),
    ...nodes.map(({ id, hostname }) => [id, hostname] as const),
  ]);
  return [...latest.values()].map((certificate) => ({
    ...certificate,
    holder: names.get(certificate.id) ?? certificate.id,
  }));
}

function takesPrecedence(one: FleetCertificate, other: FleetCertificate): boolean {
  return one.current === other.current ? one.notAfter > other.notAfter : one.current;
}

export const certificatesSection: Section<CertificateRow> = {
  name: "certificates",
  title: "certificates",
  emptyText: "no certificates",
  rows: presentCertificates,
  key: ({ serial }) => serial,
  dc: () => undefined,
  text: ({ holder, id, role, serial, issuer }) => [holder, id, role, serial, issuer].join(" "),
  concern: ({ notAfter }, at) => concernOfExpiry(notAfter, at),
  orders: [
    { name: "expiry", by: ({ notAfter }) => notAfter },
    { name: "holder", by: ({ holder = "" }) => holder },
    { name: "role", by: ({ role }) => role },
  ],
  columns: certificateColumns,
  open: (row, _snapshot, { now }) => ({
    title: `certificate of ${row.holder}`,
    facts: [
      expiryFact("expires", row.notAfter, now),
      ["role", row.role],
      ["id", row.id],
      ["serial", row.serial],
      ["issuer", row.issuer],
      ["issued", row.issued],
      ["status", certificateWord(row)],
    ],
  }),
  command: ({ id }) => `kcore get certificates --node ${id}`,
};
