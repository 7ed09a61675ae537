// One process, since the tests share nodes that are deployed once (test/support/deployed-lab.ts).
import "./deployed/deploy-node.ts";
import "./deployed/update-over-ssh.ts";
