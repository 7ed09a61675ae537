import { certificateWord } from "../../fleet-labels.ts";
import { span } from "../text.ts";
import { concernMark, concernOfExpiry, expiryCell, expiryFact, sinceCell } from "./cells.ts";
import type { Section } from "./section.ts";
import type { FleetCertificate, FleetSnapshot } from "./snapshot.ts";

/** A certificate with the name of the node that holds it. */
interface CertificateRow extends FleetCertificate {
  readonly holder: string;
}

/** The present certificate of each holder, without replaced and revoked ones. */
function held({ certificates, nodes, controllers }: FleetSnapshot): readonly CertificateRow[] {
  const latest = new Map<string, FleetCertificate>();
  for (const certificate of certificates) {
    if (certificate.status === "revoked") continue;
    const key = `${certificate.role} ${certificate.id}`;
    const known = latest.get(key);
    if (!known || isNewer(certificate, known)) latest.set(key, certificate);
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

function isNewer(one: FleetCertificate, other: FleetCertificate): boolean {
  return one.current === other.current ? one.notAfter > other.notAfter : one.current;
}

export const certificatesSection: Section<CertificateRow> = {
  name: "certificates",
  title: "certificates",
  none: "no certificates",
  rows: held,
  key: ({ serial }) => serial,
  dc: () => undefined,
  text: ({ holder, id, role, serial, issuer }) => [holder, id, role, serial, issuer].join(" "),
  concern: ({ notAfter }, at) => concernOfExpiry(notAfter, at),
  orders: [
    { name: "expiry", by: ({ notAfter }) => notAfter },
    { name: "holder", by: ({ holder }) => holder },
    { name: "role", by: ({ role }) => role },
  ],
  columns: ({ theme, now }) => [
    { title: "", width: 1, drop: 0, cell: ({ notAfter }) => [concernMark(concernOfExpiry(notAfter, now), theme)] },
    { title: "HOLDER", width: 14, grow: 3, max: 40, drop: 0, cell: ({ holder }) => [span(holder)] },
    { title: "ROLE", width: 10, drop: 1, cell: ({ role }) => [span(role)] },
    { title: "EXPIRY", width: 7, align: "right", drop: 0, cell: ({ notAfter }) => expiryCell(notAfter, now) },
    { title: "AGE", width: 5, align: "right", drop: 3, cell: ({ issued }) => sinceCell(issued, now) },
    { title: "SERIAL", width: 12, grow: 2, max: 40, drop: 4, cell: ({ serial }) => [span(serial, "muted")] },
    { title: "ISSUER", width: 12, grow: 2, max: 40, drop: 5, cell: ({ issuer }) => [span(issuer, "muted")] },
  ],
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
