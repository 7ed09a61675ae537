import { sh, type Sh } from "../sh.ts";
import { keyFits, strongKey } from "./luks.ts";

/** Options with which cryptsetup(8) unlocks a container only by the machine's TPM, without a question. */
export const byTpm = ["--token-only", "--token-type", "systemd-tpm2"] as const;

/** sh condition: the TPM opens the container on `$device`. */
export const tpmOpens: Sh = sh`cryptsetup open --test-passphrase -q ${[...byTpm]} "$device" </dev/null 2>/dev/null`;

/** PCRs as systemd-cryptenroll(1) takes them: `7+11`. */
export function pcrList(pcrs: readonly number[]): string {
  return [...new Set(pcrs)].toSorted((a, b) => a - b).join("+");
}

/**
 * Reads the systemd-cryptenroll(1) tokens of the container on `$device`. Sets `opens` to yes if the TPM opens the
 * container, else to no. Sets `tpm` to `absent`, to the number of tokens if there are several, or to a single token's PCRs and
 * `opens`.
 */
export const readTpm: Sh = sh`opens=no tpm=absent
json=$(cryptsetup luksDump --dump-json-metadata "$device" 2>/dev/null | tr -d ' \n\t')
tokens=$(printf '%s\n' "$json" | grep -o '"type":"systemd-tpm2"' | wc -l)
if [ "$tokens" -gt 0 ]; then
  if ${tpmOpens}; then opens=yes; fi
  tpm="$(printf '%s\n' "$json" | sed -n 's/.*"type":"systemd-tpm2"//; s/.*"tpm2-pcrs":\[\([0-9,]*\)\].*/PCR \1/p' | tr , +), opens: $opens"
  [ "$tokens" -eq 1 ] || tpm="$tokens tokens"
fi`;

/** The value of `tpm` for a container that the TPM opens with these PCRs. */
export function tpmFact(pcrs: string): string {
  return `PCR ${pcrs}, opens: yes`;
}

/** Refuses with TPM_MISSING or TOOL_MISSING if the node cannot enroll a TPM. */
export const requireTpm: Sh = sh`[ -c /dev/tpmrm0 ] ||
  refuse TPM_MISSING 'this machine has no TPM 2.0 that its kernel knows (/dev/tpmrm0); it may be switched off in the firmware'
have systemd-cryptenroll ||
  refuse TOOL_MISSING 'systemd-cryptenroll is not on this node; package systemd-cryptsetup has it, in Debian 12 systemd itself'
systemd-cryptenroll --tpm2-device=list >/dev/null 2>&1 ||
  refuse TOOL_MISSING "systemd-cryptenroll finds no libraries for the TPM; package tpm2-tools brings them"`;

/**
 * Binds the container on `$device`, which the key file opens, to the TPM. An earlier binding is removed first: for equal
 * PCRs of another TPM systemd-cryptenroll would do nothing.
 */
export function bindTpm(keyFile: string, pcrs: string): Sh {
  return sh`systemd-cryptenroll --wipe-slot=tpm2 "$device" >/dev/null || exit 1
systemd-cryptenroll ${`--unlock-key-file=${keyFile}`} --tpm2-device=auto ${`--tpm2-pcrs=${pcrs}`} "$device" || exit 1`;
}

/** Adds the key file's key to the container on `$device`, which the TPM opens. */
export function addByTpm(keyFile: string): Sh {
  return sh`cryptsetup luksAddKey -q ${[...byTpm]} ${[...strongKey]} "$device" ${keyFile} </dev/null || exit 1`;
}

/**
 * Removes the key file's key from the container on `$device`, and then the file, once the TPM has opened the container.
 */
export function dropKeyFile(keyFile: string): Sh {
  return sh`if [ -e ${keyFile} ]; then
  ${tpmOpens} || { echo "the TPM does not open $device, so its key file stays" >&2; exit 1; }
  if ${keyFits(keyFile)}; then
    cryptsetup luksRemoveKey -q "$device" ${keyFile} && sync || exit 1
  fi
  rm -f ${keyFile} && sync || exit 1
fi`;
}

/**
 * Removes kcore's TPM binding from the container on `$device`, and then the mark, once the key file has opened the
 * container.
 */
export function unbindTpm(keyFile: string, mark: string): Sh {
  return sh`if [ -e ${mark} ]; then
  ${keyFits(keyFile)} || { echo "the key file does not open $device, so its TPM stays" >&2; exit 1; }
  systemd-cryptenroll --wipe-slot=tpm2 "$device" && rm -f ${mark} && sync || exit 1
fi`;
}
