import { certificateWord } from "../fleet-labels.ts";
import type { FleetCertificate } from "../ink/fleet/snapshot.ts";
import { ageColumn, expiryColumn, type Column } from "./column.ts";

/** A certificate with the name of its holder, as far as that is known. */
export interface CertificateRow extends FleetCertificate {
  readonly holder?: string;
}

export const certificateColumns: readonly Column<CertificateRow>[] = [
  { title: "HOLDER", live: true, cell: ({ holder, id }) => holder ?? id },
  { title: "SERIAL", cell: ({ serial }) => serial, role: "muted" },
  { title: "ROLE", cell: ({ role }) => role },
  { title: "ID", cell: ({ id }) => id },
  { title: "STATUS", cell: certificateWord },
  ageColumn("AGE", ({ issued }) => issued),
  expiryColumn("EXPIRY", ({ notAfter }) => notAfter),
  { title: "ISSUER", wide: true, cell: ({ issuer }) => issuer, role: "muted" },
  { title: "SPKI", wide: true, cell: ({ spki }) => spki },
  { title: "REVOKED", wide: true, cell: ({ revoked }) => (revoked ? `${revoked.reason} (${revoked.by})` : "") },
];
