import ssl
import urllib.request
import yaml, os, base64

cluster = yaml.safe_load(open(os.environ["KUBECONFIG"]))["clusters"][0]["cluster"]
authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
context = ssl.create_default_context(cadata=authority)
context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
port = cluster["server"].rsplit(":", 1)[1]
for host in ("127.0.0.1", "localhost"):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.minimum_version = context.maximum_version = version
        assert urllib.request.urlopen(f"https://{host}:{port}/readyz", context=context).read() == b"ok"
try:
    urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz")
except urllib.error.URLError as error:
    assert isinstance(error.reason, ssl.SSLCertVerificationError), error
else:
    raise AssertionError("trusted without our authority")
print("done")
