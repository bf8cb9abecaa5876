# Variables that matter, each with what it means.
doctor() { env "$@" cudamem doctor --sim | grep ' environment '; }
doctor CUDAMEM_DISABLE=1
env CUDAMEM_DISABLE=1 cudamem doctor --sim >/dev/null
echo "status $?"
doctor CUDAMEM_DISABLE=0
doctor PYTORCH_NO_CUDA_MEMORY_CACHING=1 CUDA_VISIBLE_DEVICES=-1
doctor CUDA_VISIBLE_DEVICES=
doctor CUDA_VISIBLE_DEVICES=0,-1
doctor PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
doctor PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
doctor XLA_PYTHON_CLIENT_PREALLOCATE=true NVTX_INJECTION64_PATH=/opt/tool.so
