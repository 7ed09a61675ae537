import { z } from "zod";
import { blobOf, type Blob } from "../step/blob.ts";
import { defineModule, type StepFacts } from "../step/define.ts";
import { AbsolutePath, FileMode, UserName } from "../step/fields.ts";
import { probeOwnership, wantOwnership } from "../step/fragments/files.ts";
import { ownersOf, pathsOf } from "../step/effects.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const Pem = z
  .string()
  .max(65_536)
  .regex(/^(\s*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+$/, "must be PEM certificates")
  .transform((text) => `${text.trim().replaceAll("\r", "")}\n`);

const args = z.strictObject({
  path: AbsolutePath.describe("Where the certificate goes."),
  content: Pem.describe("The certificate, followed by those of its issuers but the root, in PEM."),
  ca: z
    .strictObject({
      path: AbsolutePath.describe("Where the CA's certificate goes."),
      content: Pem.describe("The CA's root certificate in PEM."),
      owner: UserName.optional().describe("Owner of this file; else that of the certificate."),
      group: UserName.optional().describe("Group of this file; else that of the certificate."),
    })
    .describe("The CA that the certificate must verify against.")
    .meta({
      examples: [
        {
          path: "/etc/kcore/certs/ca.crt",
          content: "-----BEGIN CERTIFICATE-----\nMIIB0w==\n-----END CERTIFICATE-----\n",
          owner: "root",
          group: "root",
        },
      ],
    }),
  key: AbsolutePath.describe("The private key on the node that the certificate must be for."),
  mode: FileMode.default("0644").describe("Mode of both files."),
  owner: UserName.default("root").describe("Owner of the certificate."),
  group: UserName.default("root").describe("Group of the certificate."),
});

/**
 * ```yaml
 * certificate.dropped:
 *   path: /etc/kcore/certs/node.crt
 *   content: |
 *     -----BEGIN CERTIFICATE-----
 *     MIIBszCCAVmgAwIBAgIUFAKE
 *     -----END CERTIFICATE-----
 *   ca:
 *     path: /etc/kcore/certs/ca.crt
 *     content: |
 *       -----BEGIN CERTIFICATE-----
 *       MIIBgTCCASegAwIBAgIUFAKE
 *       -----END CERTIFICATE-----
 *   key: /etc/kcore/certs/node.key
 * ```
 * Before anything is written, the node's openssl must find that the certificate fits the key and is valid now by the
 * node's clock. Its chain must verify up to the CA.
 */
export const certificateDropped = defineModule({
  name: "certificate.dropped",
  summary: "Keeps a certificate and its CA on the node, checked against the key there.",
  alsoKnownAs: ["x509_certificate", "x509.certificate_managed", "cert", "tls"],
  args,
  refusals: ["CERTIFICATE_INVALID", "CERTIFICATE_KEY_MISMATCH", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE"],
  step: ({ path, content, ca, key, mode, owner, group }) => {
    const files = [
      { name: "", path, blob: blobOf(content), owner, group, mode },
      {
        name: "ca ",
        path: ca.path,
        blob: blobOf(ca.content),
        owner: ca.owner ?? owner,
        group: ca.group ?? group,
        mode,
      },
    ] as const;
    const [leaf, root] = files;
    const wantedFacts = ({ name, blob, ...ownership }: (typeof files)[number]): StepFacts =>
      Object.fromEntries(
        Object.entries({ content: `sha256:${blob.sha256}`, ...wantOwnership(ownership) }).map(([fact, value]) => [
          `${name}${fact}`,
          value,
        ]),
      );
    const readFiles = shLines(
      files.map(
        (file) => sh`(
  fact() { printf 'F %s=%s\n' ${file.name}"$1" "$2" >&3; }
  kind_of ${file.path}
  if [ "$kind" != file ]; then
    fact content "$kind"
  else
    sum=$(sha256sum <${file.path}) || exit 1
    fact content "sha256:\${sum%% *}"
    ${probeOwnership(file.path, file)}
  fi
) || exit 1`,
      ),
    );
    return {
      want: {
        ...wantedFacts(leaf),
        ...wantedFacts(root),
        key: "matches",
      },
      probe: sh`${readFiles}${publicKeys}
fact key "$(compare ${path} ${key})"`,
      foresee: sh`[ -f ${key} ] || refuse CERTIFICATE_KEY_MISMATCH ${noKey(key)}
foresee_place ${path} 8 0 ${owner} ${group}
foresee_place ${ca.path} 8 0 ${root.owner} ${root.group}`,
      apply: sh`${publicKeys}
${check(leaf.blob, root.blob, key)}
parent_of ${path} 0 ${owner}
parent_of ${ca.path} 0 ${root.owner}
put_file ${root.blob} ${ca.path} ${mode} ${root.owner} ${root.group} && put_file ${leaf.blob} ${path} ${mode} ${owner} ${group}`,
      effects: {
        writes: pathsOf([path, ca.path]),
        reads: [
          ...[path, key].map((at) => ({ is: "path", path: at, owner }) as const),
          { is: "path", path: ca.path, owner: root.owner },
          ...files.flatMap(ownersOf),
        ],
      },
      tools: [{ command: "openssl", package: "openssl" }],
    };
  },
});

/** The function `compare CERTIFICATE KEY`: prints `matches`, `differs`, or `absent` if one of the files is missing. */
const publicKeys = sh`compare() {
  if [ ! -f "$1" ] || [ ! -f "$2" ]; then
    echo absent
  elif [ "$(openssl x509 -in "$1" -noout -pubkey)" = "$(openssl pkey -in "$2" -passin pass: -pubout)" ]; then
    echo matches
  else
    echo differs
  fi 2>/dev/null
}`;

function noKey(key: string): string {
  return `there is no private key ${key}: key.generated makes it`;
}

function check(leaf: Blob, root: Blob, key: string): Sh {
  return sh`case $(compare ${leaf} ${key}) in
  matches) ;;
  absent) refuse CERTIFICATE_KEY_MISMATCH ${noKey(key)} ;;
  *) refuse CERTIFICATE_KEY_MISMATCH ${`the certificate is not for the private key ${key}`} ;;
esac
output=$(openssl verify -x509_strict -CAfile ${root} -untrusted ${leaf} ${leaf} 2>&1) ||
  refuse CERTIFICATE_INVALID "the certificate does not verify on this node, whose clock says $(date -u '+%Y-%m-%d %H:%M:%S') UTC$K_NL$output"`;
}
