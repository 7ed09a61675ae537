import ssh2 from "ssh2";

/** A pair of SSH keys: `secret` as a key file's text, `line` as `TYPE BASE64`. */
export interface KeyPair {
  readonly secret: string;
  readonly line: string;
}

/** Makes an Ed25519 key pair. A few in a thousand of ssh2's pairs can be read neither by ssh2 nor by OpenSSH: another pair replaces them. */
export function makeKeyPair(comment: string): KeyPair {
  for (;;) {
    const { private: secret, public: line } = ssh2.utils.generateKeyPairSync("ed25519", { comment });
    const [type, key] = line.split(" ");
    if (!(ssh2.utils.parseKey(secret) instanceof Error)) return { secret, line: `${type} ${key}` };
  }
}
