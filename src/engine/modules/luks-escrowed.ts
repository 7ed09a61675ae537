import { createHash, createPublicKey } from "node:crypto";
import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { keyFits, luksFolder, strongKey } from "../step/fragments/luks.ts";
import { byTpm, tpmOpens } from "../step/fragments/luks-tpm.ts";
import { sh } from "../step/sh.ts";

/** The number of the recovery key's slot (the last of LUKS2's 32), and of the token that describes the slot. */
const slot = "31";

const args = z.strictObject({
  publicKey: z
    .string()
    .refine(isRsa, "must be an RSA public key of at least 2048 bits in PEM")
    .describe("The RSA public key, in PEM, that the recovery keys are sealed for."),
});

/**
 * ```yaml
 * luks.escrowed:
 *   publicKey: |
 *     -----BEGIN PUBLIC KEY-----
 *     MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArS2542LG2F0s81ni7wfz
 *     iwhBo32gD5Gn3MLZiTMMomNr6LCVmRaiRNrHHYKuHsLZ32pT4YVYqWYmSmc5bfyo
 *     tWqEQu1f/XFycbtRdMwppvk1kkYdIFNEg0SCyNSmFHEH/sc41bk7rGCXS/ZLDbXQ
 *     Z6ZplXDqxrj52W4Am4ttmuM2F1L/AU8ZnVVU14E+o95TAt9GLHsabn04WwvK8XlG
 *     8r1xFJASRQNKOz5XXYtBJ3qJZtsiCDOatbCiCIj5OUFmjrfB30QncQbx9L7Xvx78
 *     +Ln3/8fuiw3GG7bKRGZiKkyImtdzp4BJXYVmrS2cdgnwlY6lzxkZWYbQeCdyyQkc
 *     MQIDAQAB
 *     -----END PUBLIC KEY-----
 * ```
 * A recovery key for every LUKS container of the node that `luks.opened` or `luks.root` made: 256 random bits as 64 letters,
 * as systemd-cryptenroll(1) writes them, in key slot 31. The key is made on the node and leaves it only sealed (RSAES-OAEP
 * with SHA-256, RFC 8017). The sealed key is in the fact `sealed`, in the container's own header (token 31) and in
 * `/etc/kcore/luks`. For another public key a new recovery key is made. The fact `sealed` has a word
 * UUID:KEY:SERIALS for each container: the sealed key in hex, and the serials of its disks, separated by commas.
 */
export const luksEscrowed = defineModule({
  name: "luks.escrowed",
  summary: "Keeps a recovery key, sealed with a public key, for every LUKS container of kcore's.",
  alsoKnownAs: ["luks_device", "crypttab", "recovery key"],
  args,
  refusals: ["LUKS_CLOSED", "LUKS_KEY_MISSING", "TOOL_MISSING"],
  step: ({ publicKey }) => {
    const blob = blobOf(publicKey);
    const sealedFor = spkiSha256(publicKey);
    // UUID.recovery has two words: the fingerprint of the public key, and the container's word of the fact `sealed`.
    const readState = sh`missing= sealed=
for opener in ${luksFolder}/*.key ${luksFolder}/*.tpm2; do
  [ -f "$opener" ] || continue
  file=\${opener%.*} whom= word=
  # A container with a key file and a TPM mark counts once.
  [ "$opener" = "$file.key" ] || [ ! -f "$file.key" ] || continue
  uuid=\${file##*/}
  [ ! -f "$file.recovery" ] || read -r whom word <"$file.recovery"
  if [ "$whom" = ${sealedFor} ]; then sealed="$sealed$word "; else missing="$missing$uuid "; fi
done`;
    return {
      effects: {
        writes: [{ is: "tree", path: luksFolder }],
        reads: [
          { is: "tree", path: luksFolder },
          { is: "program", name: "cryptsetup" },
        ],
      },
      want: { missing: "none" },
      probe: sh`${readState}
fact missing "\${missing:-none}"
fact sealed "$sealed"`,
      guard: sh`have cryptsetup || refuse TOOL_MISSING 'cryptsetup is not on this node; package cryptsetup-bin has it'`,
      apply: sh`${readState}
set -f
for uuid in $missing; do
  file=${luksFolder}/$uuid
  device=$(cryptsetup status "luks-$uuid" | sed -n 's/^ *device: *//p')
  [ -b "$device" ] || refuse LUKS_CLOSED "the container luks-$uuid, which kcore made, is not open"
  # The old recovery key is removed only if a new one can be added: it may be the only key that opens the container.
  if ${keyFits(sh`"$file.key"`)}; then
    set -- --key-file "$file.key"
  elif ${tpmOpens}; then
    set -- ${[...byTpm]}
  else
    refuse LUKS_KEY_MISSING "neither the key file $file.key nor a TPM opens the container $uuid, so it gets no other recovery key"
  fi
  recovery=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' | tr 0-9a-f cbdefghijklnrtuv | sed -e 's/......../&-/g' -e 's/-$//')
  [ \${#recovery} = 71 ] || exit 1
  hex=$(printf %s "$recovery" | openssl pkeyutl -encrypt -pubin -inkey ${blob} -pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 | od -An -v -tx1 | tr -d ' \n')
  [ -n "$hex" ] || exit 1
  serials=$(lsblk -snlo SERIAL "$device" | tr -d ' ' | sed '/^$/d' | sort -u | tr '\n' ,)
  word=$uuid:$hex:\${serials%,}
  # Only UUID.new, left by a run that died, or the token proves that kcore filled the key slot.
  if [ -e "$file.new" ] || cryptsetup token export --token-id ${slot} "$device" 2>/dev/null | grep -q kcore-sealed; then
    cryptsetup token remove --token-id ${slot} "$device" 2>/dev/null
    cryptsetup luksKillSlot -q "$device" ${slot} </dev/null >/dev/null 2>&1
  fi
  (umask 077 && echo ${sealedFor} "$word" >"$file.new") && sync || exit 1
  printf %s "$recovery" | cryptsetup luksAddKey -q "$@" --key-slot ${slot} ${[...strongKey]} "$device" - || exit 1
  printf '{"type":"systemd-recovery","keyslots":["%s"],"kcore-sealed":"%s"}' ${slot} "$hex" |
    cryptsetup token import --token-id ${slot} --json-file - "$device" || exit 1
  mv "$file.new" "$file.recovery" && sync || exit 1
done`,
      tools: [
        { command: "openssl", package: "openssl" },
        { command: "lsblk", package: "util-linux" },
      ],
      timeout: 300,
    };
  },
});

function isRsa(pem: string): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey(pem);
    return asymmetricKeyType === "rsa" && (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048;
  } catch {
    return false;
  }
}

function spkiSha256(pem: string): string {
  return createHash("sha256")
    .update(createPublicKey(pem).export({ type: "spki", format: "der" }))
    .digest("hex");
}
