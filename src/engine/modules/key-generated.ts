import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, FileMode, UserName } from "../step/fields.ts";
import { probeOwnership, wantOwnership } from "../step/fragments/files.ts";
import { ownersOf } from "../step/effects.ts";
import { sh } from "../step/sh.ts";

const args = z.strictObject({
  path: AbsolutePath.describe("The private key's file (PEM, PKCS #8)."),
  algorithm: z.literal("ec-p256").default("ec-p256").describe("The kind of key."),
  mode: FileMode.refine(
    (mode) => /^0?[0-7][04]0$/.test(mode),
    "must give nothing to others and no writing to the group",
  )
    .default("0600")
    .describe("Mode."),
  owner: UserName.optional().describe("Owner; else root, or the user of runAs."),
  group: UserName.optional().describe("Group; else root, or with runAs not managed."),
  challenge: z
    .string()
    .regex(/^[\x20-\x7e]{1,512}$/, "must be one line of ASCII")
    .optional()
    .describe("A text that the key signs, to prove that the node has it: fact proof."),
  certificate: AbsolutePath.optional().describe(
    "Where the certificate for this key lies, if there is one: fact certificate.",
  ),
});

/**
 * ```yaml
 * key.generated:
 *   path: /etc/kcore/certs/node.key
 *   challenge: "kcore proof of possession {{run.challenge}} {{node.id}}"
 * ```
 * A missing EC P-256 key is made on the node. The key never leaves the node and is never overwritten. Facts for later
 * steps: `spki`, the public key, as base64 of the DER SubjectPublicKeyInfo. `proof`, base64 of the DER ECDSA signature with
 * SHA-256 over the challenge's bytes; it differs each time and is never compared. `certificate`, base64 of the first 16 KiB
 * of the certificate's file; empty if there is no such file.
 */
export const keyGenerated = defineModule({
  name: "key.generated",
  summary: "Keeps a private key that is made on the node and never leaves it.",
  alsoKnownAs: ["openssl_privatekey", "openssl_csr", "x509.private_key_managed", "csr", "tls"],
  args,
  refusals: ["FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "KEY_INVALID"],
  step: ({ path, mode, challenge, certificate, ...given }, { runAs }) => {
    const owner = given.owner ?? runAs ?? "root";
    const group = given.group ?? (runAs === undefined ? "root" : undefined);
    const ownership = { mode, owner, group };
    return {
      effects: {
        writes: [{ is: "path", path }],
        reads: [
          { is: "path", path, owner },
          ...(certificate === undefined ? [] : [{ is: "path", path: certificate } as const]),
          ...ownersOf(ownership),
        ],
      },
      ...(challenge !== undefined && { fresh: [challenge] }),
      want: { key: "EC P-256", ...wantOwnership(ownership) },
      probe: sh`kind_of ${path}
case $kind in
  absent) fact key absent && exit 0 ;;
  file) ;;
  *) fact key "a $kind" && exit 0 ;;
esac
${probeOwnership(path, ownership)}
# openssl reads the opened file, since the path could be replaced by a link to another key meanwhile.
open_file ${path} || exit 1
spki= public=$(openssl pkey -in /proc/self/fd/9 9<&9 -passin pass: -pubout 2>/dev/null) && public=\${public#*KEY-----}
for word in \${public%%-----END*}; do spki=$spki$word; done
# Only a private key of this kind will do. The DER of its public key begins with the curve's name and the form of the point,
# uncompressed or compressed (SEC 1, RFC 5480).
case $spki in
  MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE* | MDkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDIgA[CD]*) ;;
  *) fact key "something else" && exit 0 ;;
esac
fact key "EC P-256"
fact spki "$spki"
${
  challenge === undefined
    ? sh`:`
    : sh`proof=$(printf %s ${challenge} | openssl dgst -sha256 -sign /proc/self/fd/9 9<&9 | openssl base64 -A) && [ -n "$proof" ] || exit 1
fact proof "$proof"`
}
${certificate === undefined ? sh`:` : sh`fact certificate "$(open_file ${certificate} 2>/dev/null && head -c 16384 <&9 | openssl base64 -A)"`}`,
      guard: sh`case $(had key) in
  absent | 'EC P-256') ;;
  *) refuse KEY_INVALID ${`${path} is there, but it is no unencrypted EC P-256 private key; kcore does not overwrite it`} ;;
esac`,
      foresee: sh`foresee_place ${path} 8 0 ${owner} ${group ?? "-"}`,
      apply: sh`kind_of ${path}
if [ "$kind" = absent ]; then
  parent_of ${path} 0 ${owner}
  umask 077
  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:named_curve -out "$K_TMP/key" &&
    put_file "$K_TMP/key" ${path} ${mode} ${owner} ${group ?? "-"}
  status=$?
  rm -f "$K_TMP/key"
  exit $status
fi
own_file ${path} ${mode} ${owner} ${group ?? "-"}`,
      tools: [{ command: "openssl", package: "openssl" }],
    };
  },
});
