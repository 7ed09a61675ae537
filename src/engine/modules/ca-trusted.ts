import { X509Certificate } from "node:crypto";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { blobOf } from "../step/blob.ts";
import { defineModule, type StepContext } from "../step/define.ts";
import { probeFile, wantFile } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { pathsOf } from "../step/effects.ts";
import { sh } from "../step/sh.ts";

const args = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "must be letters, digits, “.”, “_” and “-”")
      .describe("The CA's name on the node: its file's name, without .crt."),
    certificate: z.string().optional().describe("The CA's certificate in PEM."),
    source: z.string().optional().describe("Instead of certificate: a file of the project with it."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the node shall trust the CA."),
  })
  .refine(
    ({ certificate, source, state }) =>
      [certificate, source].filter((given) => given !== undefined).length === (state === "present" ? 1 : 0),
    "give one of certificate and source (neither with state: absent)",
  );
type Args = z.output<typeof args>;

/**
 * ```yaml
 * ca.trusted:
 *   name: example
 *   certificate: |
 *     -----BEGIN CERTIFICATE-----
 *     MIIBgDCCASegAwIBAgIUU0dYKP+97fsFLO5s7u3lvpnq90UwCgYIKoZIzj0EAwIw
 *     FTETMBEGA1UEAwwKRXhhbXBsZSBDQTAgFw0yNjExMjUxNTI3NDNaGA8yMTI2MTEw
 *     MTE1Mjc0M1owFTETMBEGA1UEAwwKRXhhbXBsZSBDQTBZMBMGByqGSM49AgEGCCqG
 *     SM49AwEHA0IABGLyT89y18Caa3LdK7l6XUTMsa6xfw4jLqgGF77COtzvIn44tSmg
 *     8SeS/SDHCCQ7JABEIxWo0E4DVh8vd4pGIyyjUzBRMB0GA1UdDgQWBBRrZVq6VweQ
 *     L3Av4Raml01l7KTPrDAfBgNVHSMEGDAWgBRrZVq6VweQL3Av4Raml01l7KTPrDAP
 *     BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCICqsixdMj7mShimkZHbw
 *     oGXVnpUkdSvNb7R1mjU/tntNAiBpJtT/d8nmWtkvZ3Nvbwlkjz3tA1orwwKd/eX0
 *     7d3ikA==
 *     -----END CERTIFICATE-----
 * ```
 * The CA is added to the distribution's: by update-ca-certificates(8) on Debian and Alpine, update-ca-trust(8) on Fedora.
 * The bundle that programs read must contain the CA, too. A certificate that is not a CA's is refused
 * before the run; a certificate that is not valid by the node's clock is refused on the node. Services that read the
 * bundle at their start keep the old one: restart them with `restartOn`.
 */
export const caTrusted = defineModule({
  name: "ca.trusted",
  summary: "Keeps a CA among those that the node's programs trust.",
  alsoKnownAs: ["update-ca-certificates", "ca-certificates", "trust anchor"],
  args,
  refusals: ["CERTIFICATE_INVALID", "TOOL_MISSING", ...fileRefusals],
  step: (given, context) => {
    const { name, state } = given;
    const [debian, fedora] = ["/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors"].map(
      (folder) => `${folder}/${name}.crt`,
    ) as [string, string];
    const chooseTool = sh`if have update-ca-certificates; then file=${debian} bundle=/etc/ssl/certs/ca-certificates.crt update=update-ca-certificates
elif have update-ca-trust; then file=${fedora} bundle=/etc/pki/tls/certs/ca-bundle.crt update=update-ca-trust
else refuse TOOL_MISSING "neither update-ca-certificates nor update-ca-trust is there (package ca-certificates); on NixOS the CA belongs into the node's flake"; fi`;
    // update-ca-certificates renews the links that are named by hashes only if it also makes a new link.
    const link = `/etc/ssl/certs/${name}.pem`;
    const renew = sh`rm -f ${link} && "$update"`;
    const each = (text: (path: string) => ReturnType<typeof sh>): ReturnType<typeof sh> =>
      sh`if [ "$file" = ${debian} ]; then
${text(debian)}
else
${text(fedora)}
fi`;
    const probe = sh`${chooseTool}
${each((path) => probeFile({ fact: "certificate", path }))}`;
    const paths = [debian, fedora, "/etc/ssl/certs/ca-certificates.crt"];
    const common = {
      effects: {
        writes: pathsOf(paths),
        reads: [
          ...pathsOf(paths),
          ...["update-ca-certificates", "update-ca-trust"].map((tool) => ({ is: "program", name: tool }) as const),
        ],
      },
      guard: sh`${chooseTool}
guard_file "$file"
not_nixos "$bundle"`,
      foresee: sh`foresee_place "$file" 8 1 root root`,
      timeout: 300,
    } as const;
    // Fedora's bundle is a link: -H compares its target.
    const newer = sh`find -H "\${file%/*}" -prune -newer "$bundle" 2>/dev/null`;
    if (state === "absent")
      return {
        ...common,
        want: { certificate: "absent", trusted: "no" },
        // If the bundle was not made anew after the file's removal, Debian's link dangles, and on Fedora the folder is
        // newer than the bundle.
        probe: sh`${probe}
if [ "$(readlink ${link})" = ${debian} ] && [ ! -e ${link} ]; then fact trusted still
elif [ "$kind:$file" = ${`absent:${fedora}`} ] && [ -n "$(${newer})" ]; then fact trusted still
elif [ "$kind" = absent ]; then fact trusted no
else fact trusted yes; fi`,
        apply: sh`${chooseTool}
remove_path "$file" 0 && "$update" && rm -f ${link} || exit 1
# A tool that finds nothing new may leave the bundle as it is.
[ -z "$(${newer})" ] || touch "$bundle"`,
      };
    const { blob, body, from, to } = certificateOf(given, context);
    return {
      ...common,
      want: { ...wantFile({ fact: "certificate", blob }), trusted: "yes" },
      probe: sh`${probe}
# Tools may wrap the base64 differently.
if awk -v wanted=${body} '
  /^-----BEGIN/ { body = ""; next }
  /^-----END/ { if (body == wanted) { found = 1; exit } next }
  { sub(/\r$/, ""); body = body $0 }
  END { exit !found }' "$bundle" 2>/dev/null; then fact trusted yes; else fact trusted no; fi`,
      guard: sh`${common.guard}
now=$(date +%s)
[ "$now" -ge ${from} ] && [ "$now" -lt ${to} ] ||
  refuse CERTIFICATE_INVALID ${`the certificate of the CA ${name} is valid from ${dateOf(from)} to ${dateOf(to)}`}", and not now by the node's clock: $(date -u '+%Y-%m-%d %H:%M:%S') UTC"`,
      apply: sh`${chooseTool}
parent_of "$file" 1 && put_file ${blob} "$file" 0644 root root && ${renew}`,
    };
  },
});

function dateOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

/**
 * The certificate as PEM, its DER in base64, and its period of validity in seconds since 1970.
 * @throws KcoreError CERTIFICATE_INVALID
 */
function certificateOf({ name, certificate, source }: Args, { readFile }: StepContext) {
  const given = source === undefined ? certificate : Buffer.from(readFile(source).bytes ?? "").toString("utf8");
  const invalid = (what: string): KcoreError =>
    new KcoreError({
      code: "CERTIFICATE_INVALID",
      message: `the content given for the CA ${name} ${what}`,
      hint: "give the CA's own certificate in PEM: -----BEGIN CERTIFICATE-----",
    });
  const [first, ...more] = given?.match(/-----BEGIN [\s\S]*?-----END [A-Z ]+-----/g) ?? [];
  if (first === undefined || more.length > 0) throw invalid("is not one certificate in PEM");
  const parsed = parseCertificate(first);
  if (parsed === undefined) throw invalid("is no certificate that can be read");
  if (!parsed.ca) throw invalid("is no CA's certificate (basicConstraints), so nothing would verify by it");
  const [from, to] = [parsed.validFrom, parsed.validTo].map((time) => Math.floor(Date.parse(time) / 1000)) as [
    number,
    number,
  ];
  return { blob: blobOf(parsed.toString()), body: parsed.raw.toString("base64"), from, to };
}

function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
