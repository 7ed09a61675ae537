import { certificateWord } from "../fleet-words.ts";
import type { FleetCertificate } from "../ink/fleet/snapshot.ts";
import { ageColumn, expiryColumn, type Column } from "./column.ts";

/** A certificate, with its holder's name if that is known. */
export interface CertificateRow extends FleetCertificate {
  readonly holder?: string;
}

export const certificateColumns: readonly Column<CertificateRow>[] = [
  {
    title: "HOLDER",
    live: true,
    cell: ({ holder, id }) => holder ?? id,
    room: { width: 14, grow: 3, max: 40, drop: 0 },
  },
  { title: "SERIAL", cell: ({ serial }) => serial, role: "muted", room: { width: 12, grow: 2, max: 40, drop: 4 } },
  { title: "ROLE", cell: ({ role }) => role, room: { width: 10, drop: 1 } },
  { title: "ID", cell: ({ id }) => id },
  { title: "STATUS", cell: certificateWord },
  ageColumn("AGE", ({ issued }) => issued, { room: { width: 5, drop: 3 } }),
  expiryColumn("EXPIRY", ({ notAfter }) => notAfter, { width: 7, drop: 0 }),
  {
    title: "ISSUER",
    wide: true,
    cell: ({ issuer }) => issuer,
    role: "muted",
    room: { width: 12, grow: 2, max: 40, drop: 5 },
  },
  { title: "SPKI", wide: true, cell: ({ spki }) => spki },
  { title: "REVOKED", wide: true, cell: ({ revoked }) => (revoked ? `${revoked.reason} (${revoked.by})` : "") },
];
