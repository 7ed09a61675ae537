import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { createForeignCa, foreignFolder, readForeignCa, readForeignCaIfAny } from "#pki/foreign-ca.ts";
import { AuthorityName, CertificateName } from "./foreign-authority.ts";

const Args = z.strictObject({
  name: AuthorityName.describe("The authority's name on the bastion"),
  commonName: CertificateName.optional().describe("The common name in the CA's certificate; else the authority's name"),
  days: z.int().min(1).max(36_500).default(3650).describe("Days that the CA lasts"),
});

/**
 * Makes a CA for another program, such as Kubernetes or etcd, on this machine, encrypted with the run's passphrase; an existing CA stays.
 * kcore's own clusters do not trust it. The CAs of these clusters decide names and usages themselves (S-14), so they cannot serve others.
 * ```yaml
 * - { id: ca, run: pki.createAuthority, name: kubernetes, once: true }
 * ```
 */
export const pkiCreateAuthority = defineAction({
  name: "pki.createAuthority",
  summary: "Makes a CA for another program, such as Kubernetes or etcd, on this machine, if it is not there yet.",
  outputs: ["ca"],
  args: Args,
  async run({ name, commonName = name, days }, context) {
    const present = await readForeignCaIfAny(context.home, name);
    if (present !== undefined) return { changed: false, outputs: { ca: present } };
    const passphrase = await context.passphrase();
    const ca = await createForeignCa(context.home, name, { commonName, days, passphrase, now: Date.now() });
    // Another run made the CA meanwhile.
    if (ca === undefined) return { changed: false, outputs: { ca: await readForeignCa(context.home, name) } };
    context.note(`made the CA “${name}” in ${foreignFolder(context.home)}; keep its passphrase, and back it up`);
    return { changed: true, outputs: { ca } };
  },
  async plan({ name }, { home }) {
    const present = await readForeignCaIfAny(home, name);
    return present === undefined ? "unknown" : { changed: false, outputs: { ca: present } };
  },
});
