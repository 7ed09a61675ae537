import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { firstCertificate } from "#pki/chain.ts";
import { foreignRenewalReason, readForeignCa, readForeignCaIfAny, type ForeignLeaf } from "#pki/foreign-ca.ts";
import { AuthorityName, CertificateName, issueByForeignCa } from "./foreign-authority.ts";
import { nodeOf } from "./cluster-context.ts";
import { Challenge, challengeFor, GeneratedKey } from "./generated-key.ts";

const Args = z.strictObject({
  authority: AuthorityName.describe("The CA, as pki.createAuthority made it"),
  key: GeneratedKey.describe("The output that a step key.generated registered, with challenge and certificate"),
  challenge: Challenge,
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  commonName: CertificateName.describe("The common name: for Kubernetes the user, such as system:node:NAME"),
  organizations: z
    .array(CertificateName)
    .default([])
    .describe("Organizations: for Kubernetes the groups, such as system:nodes"),
  hosts: z.array(z.string()).default([]).describe("Names and addresses under which the certificate's holder serves"),
  usages: z
    .array(z.enum(["server", "client"]))
    .min(1)
    .default(["client"])
    .describe("The purpose: to serve (server), to ask others (client)"),
  days: z.int().min(1).max(3650).default(365).describe("Days that the certificate lasts; renewed in the last third"),
});
type Args = z.output<typeof Args>;

/**
 * Issues a certificate of another program's CA for a key that was made on the node. A certificate beside the key is kept while it fits the
 * arguments and more than a third of its time is left. Gives `certificate` and `ca` for certificate.dropped.
 * ```yaml
 * - id: kubelet
 *   run: pki.issueCertificate
 *   each: "{{params.nodes}}"
 *   authority: kubernetes
 *   key: "{{stages.keys.kubelet}}"
 *   commonName: "system:node:{{node.name}}"
 *   organizations: [system:nodes]
 * ```
 */
export const pkiIssueCertificate = defineAction({
  name: "pki.issueCertificate",
  summary: "Issues a certificate of a CA that pki.createAuthority made, for a key of a node; renews it when due.",
  outputs: ["ca", "certificate"],
  args: Args,
  async run(args, context) {
    const node = nodeOf("pki.issueCertificate", args.node, context);
    const { authority } = args;
    const caPem = await readForeignCa(context.home, authority);
    const leaf = leafOf(args);
    const present = Buffer.from(args.key.facts.certificate ?? "", "base64").toString("utf8");
    const reason = present === "" ? "new" : foreignRenewalReason(present, leaf, caPem, Date.now());
    if (reason === undefined) return keptResult(present, caPem);
    const proof = {
      challenge: args.challenge ?? challengeFor(node, context),
      signature: args.key.facts.proof ?? "",
    };
    const { certificate, until } = await issueByForeignCa(authority, leaf, proof, context);
    context.note(`issued a certificate of ${authority} for ${args.commonName} until ${until}: ${reason}`);
    return { changed: true, outputs: { certificate, ca: caPem } };
  },
  async plan(args, context: ActionContext) {
    nodeOf("pki.issueCertificate", args.node, context);
    const caPem = await readForeignCaIfAny(context.home, args.authority);
    const present = Buffer.from(args.key.facts.certificate ?? "", "base64").toString("utf8");
    if (caPem === undefined || present === "") return "unknown";
    const reason = foreignRenewalReason(present, leafOf(args), caPem, Date.now());
    return reason === undefined ? keptResult(present, caPem) : "unknown";
  },
});

function leafOf({ commonName, organizations, hosts, usages, days, key }: Args): ForeignLeaf {
  return { commonName, organizations, hosts, usages, days, spki: key.facts.spki ?? "" };
}

/** The result for a kept certificate, in the form in which `certificate.dropped` writes it. */
function keptResult(present: string, ca: string): ActionResult {
  return { changed: false, outputs: { certificate: `${firstCertificate(present).toString().trim()}\n`, ca } };
}
