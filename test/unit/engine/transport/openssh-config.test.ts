import { expect } from "chai";
import { openSshFiles, type TrustedHop } from "#engine/transport/openssh-config.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { keyInUse, loginFailure, sshMessages } from "#engine/transport/openssh-failure.ts";
import type { TrustedKeys } from "#engine/transport/host-key.ts";
import { KcoreError } from "#errors/problem.ts";

const key = { type: "ssh-ed25519", key: "AAAAC3Nza", fingerprint: "SHA256:abc" };
const pinned: TrustedKeys = { keys: [key], revoked: [], source: "the roster", ignored: [] };
const none: TrustedKeys = { keys: [], revoked: [], source: "known_hosts", ignored: [] };
const options = { name: "n1", transport: "openssh", port: 22, user: "ops", hostKeys: [], jump: [] } as const;
const endpoint: Endpoint = { ...options, address: "192.0.2.11" };
const at = { folder: "/tmp/kcore-x", home: "/home/100%" };

describe("openSshFiles", () => {
  it("puts the roster's options first, then kcore's, then the user's and the system's files", () => {
    const hop: TrustedHop = {
      endpoint: { ...endpoint, address: "fe80::1%eth0", identityFile: "/k e y" },
      trusted: pinned,
    };
    const { config, knownHosts } = openSshFiles([hop, { endpoint, trusted: pinned }], at);
    const files = `  UserKnownHostsFile "/tmp/kcore-x/known_hosts"
  GlobalKnownHostsFile /dev/null
  KnownHostsCommand none`;
    expect(config.split("\n").slice(0, 22).join("\n")).to.equal(`Host kcore-hop-1
  HostName fe80::1%%eth0
  Port 22
  User ops
  IdentityFile "/k e y"
  IdentitiesOnly yes
  HostKeyAlias kcore-1
${files}
  ControlPath none
  ControlMaster no
  ProxyJump none
Host 192.0.2.11
  Port 22
  User ops
  HostKeyAlias kcore-2
${files}
  ProxyJump kcore-hop-1
Host *`);
    expect(config).to.include("  StrictHostKeyChecking yes\n").and.include("  BatchMode yes\n");
    expect(config).to.include("  ForwardAgent no\n");
    expect(config.split("\n").slice(-3)).to.deep.equal([
      'Include "/home/100%%/.ssh/config"',
      'Include "/etc/ssh/ssh_config"',
      "",
    ]);
    expect(knownHosts).to.equal("kcore-1 ssh-ed25519 AAAAC3Nza\nkcore-2 ssh-ed25519 AAAAC3Nza\n");
  });

  it("leaves host keys and jumps to ssh's own files for a host without known keys", () => {
    const { config, knownHosts } = openSshFiles([{ endpoint, trusted: none }], at);
    expect(config).to.match(/^Host 192\.0\.2\.11\n {2}Port 22\n {2}User ops\nHost \*\n/);
    expect(knownHosts).to.equal("");
  });

  it("refuses file names that could add options (S-2)", () => {
    for (const identityFile of ['/k"\nProxyCommand evil', "/k\n"])
      expect(() => openSshFiles([{ endpoint: { ...endpoint, identityFile }, trusted: none }], at)).to.throw(
        "cannot be told",
      );
  });

  it("lists revoked keys", () => {
    const trusted = { ...pinned, revoked: [{ ...key, key: "AAAAbad" }] };
    expect(openSshFiles([{ endpoint, trusted }], at).knownHosts).to.include("@revoked kcore-1 ssh-ed25519 AAAAbad\n");
  });
});

describe("messages of OpenSSH", () => {
  const trace = "OpenSSH_9.2p1 Debian\r\ndebug1: Reading configuration\r\n";
  const presents = "debug1: Server host key: ssh-ed25519 SHA256:new\r\n";
  const problem = (stderr: string, trusted: TrustedKeys) => {
    const error = loginFailure(endpoint, trusted, trace + stderr);
    return error instanceof KcoreError ? [error.problems[0]?.code, error.exitCode] : error;
  };

  it("are returned without debug lines", () => {
    expect(sshMessages(`${trace}Permission denied (publickey).\r\n`)).to.deep.equal(["Permission denied (publickey)."]);
    expect(keyInUse("debug1: Server host key: ssh-ed25519 SHA256:abc\r\n", pinned)).to.deep.equal({
      fingerprint: "SHA256:abc",
      hostKey: "ssh-ed25519 AAAAC3Nza",
    });
  });

  it("become the errors of the other transport", () => {
    const verification = `${presents}Host key verification failed.\r\n`;
    const revoked = { ...pinned, revoked: [{ ...key, fingerprint: "SHA256:new" }] };
    for (const [stderr, code, exit, trusted] of [
      [verification, "HOST_KEY_CHANGED", 1, pinned],
      [verification, "HOST_KEY_UNKNOWN", 1, none],
      [verification, "HOST_KEY_REVOKED", 1, revoked],
      ["ops@192.0.2.11: Permission denied (publickey).\r\n", "AUTH_FAILED", 1, pinned],
      ["ssh: Could not resolve hostname x: Name or service not known\r\n", "DNS_FAILED", 3, pinned],
      ["ssh: connect to host x port 22: Connection refused\r\n", "HOST_UNREACHABLE", 3, pinned],
      ["sh: 3: ssh: not found\n", "TOOL_MISSING", 1, pinned],
      ["", "HOST_UNREACHABLE", 3, pinned],
    ] as const)
      expect(problem(stderr, trusted), stderr).to.deep.equal([code, exit]);
  });
});
