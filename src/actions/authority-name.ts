import { z } from "zod";

/** The name of a CA of another program's, also its file's. */
export const AuthorityName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/, "must be letters, digits and hyphens, such as kubernetes");

/** A common name or an organization. */
export const CertificateName = z.string().regex(/^[\x20-\x7e]{1,64}$/, "must be 1 to 64 characters of ASCII");
