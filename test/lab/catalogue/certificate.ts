import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { issueCertificate } from "#pki/certificate.ts";
import type { Sample } from "#support/sample.ts";

const year = 365 * 86_400_000;
const valid = { notBefore: new Date(Date.now() - year), notAfter: new Date(Date.now() + year) };
const [root, leaf] = [0, 1].map(() => generateKeyPairSync("ec", { namedCurve: "P-256" })) as [Pair, Pair];
type Pair = ReturnType<typeof generateKeyPairSync>;
const ca = issueCertificate({
  ...valid,
  commonName: "sample CA",
  publicKey: root.publicKey,
  signer: root.privateKey,
  pathLength: 0,
});
const issued = issueCertificate({
  ...valid,
  commonName: "sample",
  publicKey: leaf.publicKey,
  signer: root.privateKey,
  issuer: new X509Certificate(ca),
  hosts: ["sample.example.org"],
});
const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" }) as string;

/** Certificates are made anew, since they expire. */
export const certificate: Sample = {
  id: "certificate.dropped",
  module: "certificate.dropped",
  args: {
    path: "/srv/tls/sample.crt",
    content: issued,
    ca: { path: "/srv/tls/ca.crt", content: ca },
    key: "/srv/tls/sample.key",
  },
  busybox: { refuses: "TOOL_MISSING", forWantOf: "openssl" },
  before: `mkdir -p /srv/tls && cat >/srv/tls/sample.key <<'END'\n${key}END`,
  drift: { by: "cp /srv/tls/ca.crt /srv/tls/sample.crt", finds: { content: /^sha256:/, key: "differs" } },
  refusal: {
    args: {
      path: "/srv/tls/sample.crt",
      content: ca,
      ca: { path: "/srv/tls/ca.crt", content: ca },
      key: "/srv/tls/sample.key",
    },
    code: "CERTIFICATE_KEY_MISMATCH",
  },
};
