// `node deploy/homebrew/formula.mjs TARBALL URL`: prints the Homebrew formula for a package that `npm pack` made and that
// can be downloaded at URL. Homebrew compares what it downloads with the hash of the file that you name here.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';

const [tarball, url] = process.argv.slice(2);
if (url === undefined || !/^https:\/\/[^\s"#\\]+$/.test(url)) {
  console.error('Usage: node deploy/homebrew/formula.mjs TARBALL https://…/toolgate-VERSION.tgz');
  process.exit(2);
}
const { description, license } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
const sha256 = createHash('sha256')
  .update(await readFile(tarball))
  .digest('hex');

console.log(`class Toolgate < Formula
  desc "${description.replace(/:.*/, '').replace(/^One /, '')}"
  homepage "${new URL(url).origin}"
  url "${url}"
  sha256 "${sha256}"
  license "${license}"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
    generate_completions_from_executable(bin/"toolgate", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/toolgate --version")
    (testpath/"tools.toml").write "controls = []\\n"
    assert_match "No servers are configured", shell_output("#{bin}/toolgate list servers --trust")
  end
end`);
