"""Tiny random VLMs of eight families with their processors, built from configurations alone: no hub, no torchvision."""

from typing import Any

import torch
import transformers as tr
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil
from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from training.demo.smolvlm import rescale
from training.demo.tokenizer import make_tokenizer
from training.policy import Policy, make_policy
from training.processors import image_only

CORPUS = ["what color is the circle?", "what shape is present?", "is there a red shape?", "how many shapes are there?"]
HIDDEN, LAYERS, HEADS, SIDE, PATCH = 64, 2, 2, 64, 16
